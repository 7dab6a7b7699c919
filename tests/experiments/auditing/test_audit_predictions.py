"""The audit from files: every form gives the same answer, and bad input one clear sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.cli import app
from rawlsgcn.experiments.auditing.audit_result import Audit

NODES, CLASSES = 120, 3
FEW = {"resamples": 100}


@pytest.fixture(scope="module")
def graph() -> Data:
    """A ring with chords: degrees 2 to 5, all labelled, no masks, nodes called n0, n1, …"""
    ends = [(i, (i + 1) % NODES) for i in range(NODES)]
    ends += [(i, (i * 7 + 3) % NODES) for i in range(0, NODES, 3)]
    edges = torch.tensor([end for end in ends if end[0] != end[1]]).t()
    y = torch.arange(NODES) % CLASSES
    ids = [f"n{i}" for i in range(NODES)]
    return Data(edge_index=edges, y=y, num_nodes=NODES, node_ids=ids, name="ring")


@pytest.fixture(scope="module")
def logits(graph: Data) -> np.ndarray:
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(NODES, CLASSES))
    scores[np.arange(NODES), graph.y.numpy()] += 1.5
    return scores


@pytest.fixture
def table(graph: Data, logits: np.ndarray) -> pd.DataFrame:
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    frame = pd.DataFrame(scores, columns=[f"p_{c}" for c in range(CLASSES)])
    frame.insert(0, "node", graph.node_ids)
    return frame


def figures(audit: Audit) -> list[float]:
    model = audit.models[0]
    assert model.scaling is not None
    return [model.bias, model.accuracy.value, model.loss.value, model.scaling.calibrated_bias]


def test_every_form_gives_the_same(
    graph: Data, logits: np.ndarray, table: pd.DataFrame, tmp_path: Path
) -> None:
    expected = figures(rg.audit(graph, logits, **FEW))
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.tsv", index=False, sep="\t")
    table.iloc[::-1].to_parquet(tmp_path / "c.parquet", index=False)
    table.iloc[:, [0, 3, 1, 2]].to_csv(tmp_path / "d.csv", index=False)  # columns in any order
    ids = np.array(graph.node_ids)
    np.savez(tmp_path / "e.npz", node=ids, logits=logits)
    np.savez(tmp_path / "f.npz", scores=logits)  # in node order, and the form is found out
    plain = pd.DataFrame({"id": ids, **{f"c{i}": logits[:, i] for i in range(CLASSES)}})
    plain.to_csv(tmp_path / "g.csv", index=False, header=False)
    for file in sorted(tmp_path.iterdir()):
        assert figures(rg.audit(graph, file, **FEW)) == pytest.approx(expected, abs=1e-9), file


def test_the_form_and_its_reason_are_said(graph: Data, logits: np.ndarray) -> None:
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for scores, form in (
        (logits, "logits"),
        (shares, "probabilities"),
        (shares.argmax(1), "classes"),
    ):
        model = rg.audit(graph, scores, **FEW).models[0]
        assert model.format == form
        assert model.format_reason
    forced = rg.audit(graph, shares, scores="logits", **FEW).models[0]
    assert (forced.format, forced.format_reason) == ("logits", "you said so")


def test_percentages_are_no_logits(graph: Data, logits: np.ndarray) -> None:
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    with pytest.raises(RawlsError, match=r"every row sums to 100: .* divide them by 100; if they"):
        rg.audit(graph, 100 * shares, **FEW)
    rg.audit(graph, 100 * shares, scores="logits", **FEW)
    rg.audit(graph, 30 * (shares > 0.5), **FEW)  # each node has one class: of any scale


def test_a_guess_that_scores_are_logits_is_noted(graph: Data, logits: np.ndarray) -> None:
    said = "the scores of 'mine' are taken for logits"
    assert said in " ".join(rg.audit(graph, {"mine": logits}, **FEW).notes)
    assert said not in " ".join(rg.audit(graph, {"mine": logits}, scores="logits", **FEW).notes)


def test_classes_alone_are_judged_by_their_errors(graph: Data, logits: np.ndarray) -> None:
    model = rg.audit(graph, logits.argmax(1), **FEW).models[0]
    assert model.loss_kind == "zero-one"
    assert model.scaling is None
    assert model.loss.value == pytest.approx(1 - model.accuracy.value / 100)


def test_the_labels_given_as_predictions_are_noticed(graph: Data) -> None:
    said = "is it the file of predictions?"
    classes = graph.y.clone()
    assert any(said in each for each in rg.audit(graph, classes, **FEW).models[0].warnings)
    classes[0] = (classes[0] + 1) % 2
    assert not any(said in each for each in rg.audit(graph, classes, **FEW).models[0].warnings)


def test_some_nodes_are_enough(graph: Data, table: pd.DataFrame, tmp_path: Path) -> None:
    table.iloc[10:70].to_csv(tmp_path / "some.csv", index=False)
    found = rg.audit(graph, tmp_path / "some.csv", **FEW)
    assert found.how.nodes == 60
    assert "60 of the 120 labeled nodes have no prediction and are ignored." in found.notes


def test_models_are_compared_on_the_nodes_of_both(
    graph: Data, table: pd.DataFrame, logits: np.ndarray, tmp_path: Path
) -> None:
    table.iloc[:80].to_csv(tmp_path / "a.csv", index=False)
    better = logits.copy()
    better[np.arange(NODES), graph.y.numpy()] += 3
    found = rg.audit(graph, {"one": tmp_path / "a.csv", "two": better}, **FEW)
    assert [model.name for model in found.models] == ["one", "two"]
    assert {model.nodes for model in found.models} == {80}
    (pair,) = found.comparisons
    assert pair.accuracy.value == pytest.approx(
        found.models[0].accuracy.value - found.models[1].accuracy.value
    )
    assert pair.accuracy.high < 0  # a larger score of the right class is better


def test_a_probability_of_zero_is_told(graph: Data, table: pd.DataFrame, tmp_path: Path) -> None:
    table.loc[0, ["p_0", "p_1", "p_2"]] = [0.0, 1.0, 0.0]
    table.to_csv(tmp_path / "a.csv", index=False)
    model = rg.audit(graph, tmp_path / "a.csv", **FEW).models[0]
    assert np.isfinite(model.bias)
    assert any("probability 0" in warning for warning in model.warnings)


Change = Callable[[pd.DataFrame], pd.DataFrame]


def _set(row: int, column: str, value: object) -> Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return change


BAD: dict[str, tuple[Change, str]] = {
    "an unknown node": (_set(4, "node", "zz"), r"line 6: node zz is not in the graph"),
    "a node twice": (_set(7, "node", "n2"), r"line 9: node n2 appears twice \(first: .*line 4\)"),
    "no sum of one": (_set(3, "p_1", 0.9999), r"line 5: node n3 has probabilities that sum to"),
    "a negative one": (_set(3, "p_1", -0.2), r"line 5: node n3 has .* not all positive"),
    "an empty cell": (_set(2, "p_2", None), r"line 4, column 'p_2' is empty or NaN"),
    "the word nan": (_set(2, "p_2", "nan"), r"line 4, column 'p_2' is"),
    "a text": (_set(2, "p_2", "high"), r"line 4, column 'p_2' is 'high'"),
    "another class": (lambda f: f.assign(p_3=0.0), r"4 classes, but the labels have 3 only"),
    "a missing class": (
        lambda f: f.drop(columns="p_2").assign(p_0=1 - f["p_1"]),
        r"2 classes only, but node n2 is of class 2",
    ),
    "another graph": (
        lambda f: f.assign(node=[f"m{i}" for i in range(len(f))]),
        r"do not belong together: 120 of 120 .* the first is m0 \(.*line 2\)",
    ),
    "no ids": (lambda f: f.drop(columns="node"), r"no column of node ids"),
    "numbered from one": (
        lambda f: f.rename(columns={"p_0": "p_1", "p_1": "p_2", "p_2": "p_3"}),
        r"numbered from 1",
    ),
    "a gap in the columns": (
        lambda f: f.rename(columns={"p_2": "p_3"}),
        r"columns p_0, p_1, p_3 are not numbered 0 to 2",
    ),
    "a column twice": (
        lambda f: f.rename(columns={"p_1": "p_0"}),
        r"more than one column 'p_0'",
    ),
    "no rows": (lambda f: f.iloc[:0], r"has no rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_predictions_are_refused_with_their_line(
    graph: Data, table: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    change, said = BAD[name]
    change(table).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(RawlsError, match=said) as error:
        rg.audit(graph, tmp_path / "bad.csv", **FEW)
    assert "\n" not in str(error.value)


def test_a_class_that_the_labels_do_not_have(graph: Data, tmp_path: Path) -> None:
    frame = pd.DataFrame({"node": graph.node_ids, "predicted": [0, 7] + [1] * (NODES - 2)})
    frame.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(RawlsError, match=r"line 3: node n1 is predicted as class 7.*0 to 2"):
        rg.audit(graph, tmp_path / "bad.csv", **FEW)


def test_numbered_nodes_are_said_to_be(graph: Data, table: pd.DataFrame, tmp_path: Path) -> None:
    plain = Data(edge_index=graph.edge_index, y=graph.y, num_nodes=NODES)
    table["node"] = range(NODES)
    table.loc[4, "node"] = 999
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(RawlsError, match="not in the graph, whose nodes are numbered from 0 to 1"):
        rg.audit(plain, tmp_path / "bad.csv", **FEW)
    table["node"] += 1000
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(RawlsError, match=r"the graph's 120 \(numbered from 0 to 119\); the first"):
        rg.audit(plain, tmp_path / "bad.csv", **FEW)


def test_labels_with_gaps_are_named(graph: Data, logits: np.ndarray) -> None:
    apart = Data(edge_index=graph.edge_index, y=5 + 10 * graph.y, num_nodes=NODES)
    with pytest.raises(RawlsError, match=r"labels are 5, 15, 25, so number them 0 to 2 .* or give"):
        rg.audit(apart, logits, **FEW)
    with pytest.raises(RawlsError, match=r"class 26, .* they are 5 to 25"):
        rg.audit(apart, np.full(NODES, 26), **FEW)


def test_archives_that_do_not_hold_together(
    graph: Data, logits: np.ndarray, tmp_path: Path
) -> None:
    file, ids = tmp_path / "bad.npz", np.array(graph.node_ids)
    np.savez(file, node=ids[:, None], logits=logits)
    with pytest.raises(RawlsError, match=r"ids of the shape \(120, 1\) .* of the shape \(120,\)"):
        rg.audit(graph, file, **FEW)
    for arrays in ({"node": ids[:0]}, {}):
        np.savez(file, logits=logits[:0], **arrays)
        with pytest.raises(RawlsError, match="has no rows"):
            rg.audit(graph, file, **FEW)


def test_a_parquet_column_of_lists(
    graph: Data, logits: np.ndarray, table: pd.DataFrame, tmp_path: Path
) -> None:
    """What a data frame of arrays is written as."""
    file = tmp_path / "lists.parquet"
    expected = figures(rg.audit(graph, logits, **FEW))
    rows = table[["p_0", "p_1", "p_2"]].to_numpy().tolist()
    lists = pd.DataFrame({"node": graph.node_ids, "predicted": 0, "probabilities": rows})
    lists.to_parquet(file, index=False)
    found = rg.audit(graph, file, **FEW)
    assert figures(found) == pytest.approx(expected, abs=1e-9)
    assert found.models[0].format_reason == "the columns are called so"
    for wrong, said in (
        ([0.5, 0.5], r"row 4 .*: the list does not have 3 scores, as the first one has"),
        (None, r"row 4 .*: the list of scores is empty"),
        ([0.5, 0.5, None], r"row 4 .*: the list has an empty or NaN score"),
    ):
        lists.at[4, "probabilities"] = wrong
        lists.to_parquet(file, index=False)
        with pytest.raises(RawlsError, match=said):
            rg.audit(graph, file, **FEW)
    for column in ([["a", "b", "c"]] * NODES, [{"a": 0.5}] * NODES):
        lists["probabilities"] = column
        lists.to_parquet(file, index=False)
        with pytest.raises(RawlsError, match=r"column 'probabilities' holds .*: give a column"):
            rg.audit(graph, file, **FEW)
    lists.assign(probabilities=rows, logits=rows).to_parquet(file, index=False)
    with pytest.raises(RawlsError, match="only one can hold the scores"):
        rg.audit(graph, file, **FEW)


@pytest.mark.filterwarnings("error")
def test_huge_logits_are_judged_or_refused_without_a_warning(
    graph: Data, logits: np.ndarray
) -> None:
    model = rg.audit(graph, logits * 1e11, **FEW).models[0]
    assert np.isfinite(model.bias)
    assert np.isfinite(model.loss.high)
    with pytest.raises(RawlsError, match=r"row 0 .* node n0 has a logit of size \d\.\de\+299"):
        rg.audit(graph, logits / np.abs(logits).max() * 2e300, **FEW)
    with pytest.raises(RawlsError, match="has a logit of size"):
        rg.audit(graph, logits / np.abs(logits).max() * 1.7e308, **FEW)
    with pytest.raises(RawlsError, match="sum to inf"):
        rg.audit(graph, np.full((NODES, CLASSES), 1e308), scores="probabilities", **FEW)


def test_arrays_of_another_size_or_with_nan(graph: Data, logits: np.ndarray) -> None:
    with pytest.raises(RawlsError, match="119 nodes, but the graph has 120"):
        rg.audit(graph, logits[1:], **FEW)
    broken = logits.copy()
    broken[5, 1] = np.nan
    with pytest.raises(RawlsError, match="row 5"):
        rg.audit(graph, broken, **FEW)


def test_missing_labels(graph: Data, logits: np.ndarray) -> None:
    bare = Data(edge_index=graph.edge_index, num_nodes=NODES)
    with pytest.raises(RawlsError, match="no labels"):
        rg.audit(bare, logits, **FEW)
    partly = Data(edge_index=graph.edge_index, num_nodes=NODES, y=graph.y.clone())
    partly.y[:20] = -1
    found = rg.audit(partly, logits, **FEW)
    assert found.how.nodes == 100
    assert any("20 predicted nodes have no label" in note for note in found.notes)
    partly.y[:] = -1
    for given in (logits, logits.argmax(1)):
        with pytest.raises(RawlsError, match="no node has a label, all are -1"):
            rg.audit(partly, given, **FEW)


def test_scores_that_are_neither(graph: Data, logits: np.ndarray) -> None:
    """Between 0 and 1 but of no sum: it is not guessed what they are."""
    unclear = 1 / (1 + np.exp(-logits))
    with pytest.raises(RawlsError, match="use --scores logits"):
        rg.audit(graph, unclear, **FEW)
    assert rg.audit(graph, unclear, scores="logits", **FEW).models[0].format == "logits"


@pytest.mark.parametrize(
    "bins",
    ["quantile:x", "quantile:²", "quantile:" + "9" * 5000, "edges:3,1", "edges:", "thirds"],
)
def test_bins_that_make_no_sense(graph: Data, logits: np.ndarray, bins: str) -> None:
    with pytest.raises(RawlsError, match="--bins"):
        rg.audit(graph, logits, bins=bins, **FEW)


def test_columns_of_the_users_own(graph: Data, logits: np.ndarray, tmp_path: Path) -> None:
    file = tmp_path / "city.csv"
    cities = ["Bath" if i % 4 else "York" for i in range(NODES)]
    pd.DataFrame({"node": graph.node_ids, "city": cities}).to_csv(file, index=False)
    found = rg.audit(graph, logits, by=str(file), **FEW)
    assert found.column == "city"
    assert [(group.label, group.nodes) for group in found.models[0].groups] == [
        ("Bath", 90),
        ("York", 30),
    ]
    assert found.models[0].slope is None  # there is no order among cities
    assert "city" in str(found)
    pd.DataFrame({"node": graph.node_ids[1:], "city": cities[1:]}).to_csv(file, index=False)
    with pytest.raises(RawlsError, match="no value for node n0"):
        rg.audit(graph, logits, by=str(file), **FEW)


def test_in_degree_core_and_pagerank(graph: Data, logits: np.ndarray) -> None:
    import networkx as nx

    arcs = list(zip(*graph.edge_index.tolist(), strict=True))
    directed = nx.DiGraph(arcs)
    plain = directed.to_undirected()
    expected = {
        "in-degree": dict(directed.in_degree()),
        "core": nx.core_number(plain),
        "pagerank": nx.pagerank(plain, tol=1e-12),
    }
    for by, values in expected.items():
        nodes = rg.audit(graph, logits, by=by, **FEW).nodes
        assert nodes is not None
        assert nodes.value == pytest.approx([values[i] for i in range(NODES)], abs=1e-8)


def test_evaluate_all_leaves_training_out() -> None:
    graph = rg.synthetic(600)
    scores = torch.nn.functional.one_hot(graph.y).double()
    all_of_them = rg.audit(graph, scores, evaluate="all", **FEW)
    outside = int((~(graph.train_mask | graph.val_mask)).sum())
    assert all_of_them.how.nodes == outside
    assert rg.audit(graph, scores, **FEW).how.nodes == int(graph.test_mask.sum())


def test_the_choice_of_nodes_that_an_error_names_works(graph: Data) -> None:
    masked = graph.clone()
    places = torch.arange(NODES)
    masked.train_mask, masked.val_mask = places < 40, (places >= 40) & (places < 80)
    masked.test_mask = places >= 100
    for first, last, wider in ((0, 40, "labeled"), (80, 100, "all")):
        classes = pd.Series(0, index=masked.node_ids)[first:last]
        with pytest.raises(RawlsError, match=f"or use --evaluate {wider} "):
            rg.audit(masked, classes, **FEW)
        assert rg.audit(masked, classes, evaluate=wider, **FEW).how.nodes == last - first


def test_one_file_may_have_labels_and_predictions(
    graph: Data, logits: np.ndarray, tmp_path: Path
) -> None:
    arcs = [(graph.node_ids[a], graph.node_ids[b]) for a, b in graph.edge_index.t().tolist()]
    pd.DataFrame(arcs, columns=["source", "target"]).to_csv(tmp_path / "graph.csv", index=False)
    both = pd.DataFrame({"node": graph.node_ids, "y_true": graph.y, "y_pred": logits.argmax(1)})
    both.to_csv(tmp_path / "both.csv", index=False)
    file = str(tmp_path / "both.csv")
    said = ["audit", "--graph", str(tmp_path / "graph.csv"), "--predictions", file]
    done = CliRunner().invoke(app, [*said, "--labels", file, "--resamples", "100"])
    assert done.exit_code == 0, done.output
    assert "y_pred" not in done.output
    failed = CliRunner().invoke(app, said)
    assert f"give --labels {file}, which has column 'y_true'" in failed.stderr
    del both["y_true"]
    both.to_csv(file, index=False)
    assert "give them with --labels" in CliRunner().invoke(app, said).stderr
    unlabeled = Data(edge_index=graph.edge_index, num_nodes=NODES)
    with pytest.raises(RawlsError, match=r"give them as data\.y"):
        rg.audit(unlabeled, logits)


@pytest.mark.parametrize("name", ["x.pdf", "a folder"])
def test_a_page_has_the_name_of_one(graph: Data, tmp_path: Path, name: str) -> None:
    said = ["audit", "--dataset", "synthetic", "--predictions", __file__, "--out"]
    failed = CliRunner().invoke(app, [*said, str(tmp_path / name)])
    assert failed.exit_code == 2
    assert "end its name in .html" in failed.stderr
    with pytest.raises(RawlsError, match=r"end its name in \.html"):
        rg.audit(graph, np.zeros(NODES, int), **FEW).to_html(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_the_command_prints_and_writes(graph: Data, table: pd.DataFrame, tmp_path: Path) -> None:
    arcs = [(graph.node_ids[a], graph.node_ids[b]) for a, b in graph.edge_index.t().tolist()]
    pd.DataFrame(arcs, columns=["source", "target"]).to_csv(tmp_path / "graph.csv", index=False)
    labels = pd.DataFrame({"node": graph.node_ids, "label": graph.y.tolist()})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    table.to_csv(tmp_path / "model.csv", index=False)
    said = [
        "audit",
        "--graph",
        str(tmp_path / "graph.csv"),
        "--labels",
        str(tmp_path / "labels.csv"),
    ]
    said += ["--predictions", str(tmp_path / "model.csv"), "--resamples", "100"]
    done = CliRunner().invoke(app, [*said, "--json", str(tmp_path / "audit.json")])
    assert done.exit_code == 0, done.output
    assert "are wrong" in done.output
    assert "without noise" in done.output
    kept = json.loads((tmp_path / "audit.json").read_text())
    assert kept["verdict"]["headline"].split()[0] in done.output
    assert kept["models"][0]["name"] == "model"
    table.assign(p_0=2.0).to_csv(tmp_path / "model.csv", index=False)
    failed = CliRunner().invoke(app, said)
    assert failed.exit_code == 2
    assert "Traceback" not in failed.output


MEASURED = """
import sys
import numpy as np, torch
from torch_geometric.data import Data
import rawlsgcn as rg
from rawlsgcn._core.machine import peak_resident_bytes
n = {nodes}
edges = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
graph = Data(edge_index=edges, y=torch.arange(n) % {classes}, num_nodes=n)
rg.audit(graph, np.arange(n) % {classes}, resamples=100)
rg.audit(graph, sys.argv[2], resamples=100)
before = peak_resident_bytes()
rg.audit(graph, sys.argv[1], resamples=100)
print(peak_resident_bytes() - before)
"""


@pytest.mark.slow
def test_a_large_file_is_never_held_whole(tmp_path: Path) -> None:
    """Some blocks of rows are held at once, 30 MB: far less than the 128 MB of the file."""
    nodes, classes = 64_000, 100
    rng = np.random.default_rng(0)
    row = ",".join(f"{value:.17f}" for value in rng.dirichlet(np.ones(classes)))
    for name, rows in (("small", nodes // 16), ("large", nodes)):
        with (tmp_path / f"{name}.csv").open("w") as file:
            file.write("node," + ",".join(f"p_{c}" for c in range(classes)) + "\n")
            file.writelines(f"{node},{row}\n" for node in range(rows))
    size = (tmp_path / "large.csv").stat().st_size
    code = MEASURED.format(nodes=nodes, classes=classes)
    done = subprocess.run(
        [sys.executable, "-c", code, *(str(tmp_path / f"{n}.csv") for n in ("large", "small"))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < size / 2


def test_graph_and_predictions_may_come_in_either_order(graph: Data, logits: np.ndarray) -> None:
    expected = rg.audit(graph, {"a": logits}, **FEW).to_frame()
    pd.testing.assert_frame_equal(rg.audit({"a": logits}, graph, **FEW).to_frame(), expected)
    swapped = rg.audit([logits], graph, **FEW).to_frame()
    pd.testing.assert_frame_equal(swapped.drop(columns="model"), expected.drop(columns="model"))


def test_a_list_is_the_classes_of_one_model_or_one_model_an_item(
    graph: Data, logits: np.ndarray
) -> None:
    predicted = logits.argmax(1)
    expected = rg.audit(graph, predicted, **FEW).models[0].accuracy.value
    assert rg.audit(graph, predicted.tolist(), **FEW).models[0].accuracy.value == expected
    named = graph.clone()
    named.class_names = ["cat", "dog", "owl"]
    words = [named.class_names[each] for each in predicted]
    found = rg.audit(named, words, **FEW)
    assert [model.accuracy.value for model in found.models] == [expected]
    with pytest.raises(RawlsError, match="cow"):
        rg.audit(named, [*words[:-1], "cow"], **FEW)
    assert len(rg.audit(graph, [predicted, logits], **FEW).models) == 2
