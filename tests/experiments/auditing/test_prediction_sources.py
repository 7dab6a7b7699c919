"""What ``rg.audit`` is given in Python: splits, directions, columns and numbers, right or wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.cli import app

NODES = 150
FEW: dict[str, Any] = {"resamples": 100}


@pytest.fixture(scope="module")
def logits() -> np.ndarray:
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(NODES, 3))
    scores[np.arange(NODES), np.arange(NODES) % 3] += 1.5
    return scores


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, logits: np.ndarray) -> Path:
    """A directed graph without a split, its labels, features and predictions."""
    folder = tmp_path_factory.mktemp("files")
    ends = [(i, (i + 1) % NODES) for i in range(NODES)]
    ends += [(i, i * 7 % 11) for i in range(12, NODES, 2)]
    pd.DataFrame(ends, columns=["source", "target"]).to_csv(folder / "graph.csv", index=False)
    nodes = np.arange(NODES)
    labels = pd.DataFrame({"node": nodes, "label": nodes % 3})
    labels.to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"node": nodes, "f": nodes % 5}).to_csv(folder / "x.csv", index=False)
    table = pd.DataFrame(logits, columns=[f"logit_{c}" for c in range(3)])
    table.insert(0, "node", nodes)
    table.to_csv(folder / "model.csv", index=False)
    return folder


@pytest.fixture
def graph(files: Path) -> Data:
    return rg.read(files / "graph.csv", labels=files / "labels.csv", features=files / "x.csv")


def by_command(files: Path, *options: str) -> dict[str, Any]:
    given = ["--graph", "graph.csv", "--labels", "labels.csv", "--predictions", "model.csv"]
    given = [str(files / each) if each.endswith(".csv") else each for each in given]
    out = files / "audit.json"
    done = CliRunner().invoke(
        app, ["audit", *given, "--resamples", "100", "--json", str(out), *options]
    )
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("evaluate", [None, "all"])
def test_python_and_the_command_judge_the_same(
    files: Path, graph: Data, evaluate: str | None
) -> None:
    """The split that reading made up has nothing to do with somebody's predictions."""
    assert graph.test_mask.sum() < NODES
    options = [] if evaluate is None else ["--evaluate", evaluate]
    theirs = by_command(files, *options)
    ours = rg.audit(graph, files / "model.csv", evaluate=evaluate, **FEW)
    found = json.loads(json.dumps(ours.to_dict()))
    assert ours.how.nodes == NODES
    assert found["models"] == theirs["models"]
    assert found["verdict"] == theirs["verdict"]
    assert not any("a random split" in note for note in ours.notes)
    assert any("evaluate='test'" in note for note in ours.notes)
    assert all(mask in graph for mask in ("train_mask", "val_mask", "test_mask"))


def test_a_split_that_somebody_chose_counts(files: Path, graph: Data, logits: np.ndarray) -> None:
    of_test = int(graph.test_mask.sum())
    assert rg.audit(graph, logits, evaluate="test", **FEW).how.nodes == of_test
    named = {"labels": files / "labels.csv", "features": files / "x.csv"}
    chosen = rg.read(files / "graph.csv", split="0.5,0.25,0.25", **named)
    assert rg.audit(chosen, logits, **FEW).how.nodes == of_test
    own = graph.clone()
    own.test_mask = own.test_mask & (torch.arange(NODES) < 100)
    assert rg.audit(own, logits, **FEW).how.nodes == int(own.test_mask.sum())


def test_a_result_is_judged_on_the_split_it_was_trained_on(graph: Data) -> None:
    result = rg.fit(graph, "gcn", seeds=1, epochs=2)
    assert result.audit(**FEW).how.nodes == int(graph.test_mask.sum())


def test_directions_that_are_lost_are_not_made_up(
    files: Path, graph: Data, logits: np.ndarray
) -> None:
    with pytest.raises(RawlsError, match="directions are not known"):
        rg.audit(graph, logits, by="in-degree", **FEW)
    with pytest.raises(RawlsError, match="directions are not known"):
        rg.audit(rg.synthetic(300), np.zeros(300, int), by="in-degree", **FEW)
    arcs = pd.read_csv(files / "graph.csv").to_numpy().T
    directed = Data(edge_index=torch.from_numpy(arcs.copy()), y=graph.y, num_nodes=NODES)
    ours = rg.audit(directed, logits, by="in-degree", **FEW).nodes
    assert ours is not None
    assert ours.value == np.bincount(arcs[1], minlength=NODES).tolist()
    assert by_command(files, "--by", "in-degree")["nodes"]["value"] == ours.value


def test_a_column_called_degree_is_not_the_degree(
    files: Path, graph: Data, logits: np.ndarray
) -> None:
    values = np.arange(NODES) % 4
    file = files / "c3.csv"
    pd.DataFrame({"node": np.arange(NODES), "degree": values}).to_csv(file, index=False)
    for by in (file, ("degree", values)):
        found = rg.audit(graph, logits, by=by, **FEW)
        assert found.column == "degree (yours)"
        assert found.models[0].low is None
        assert "neighbour" not in str(found)
    assert rg.audit(graph, logits, **FEW).models[0].low is not None


def test_shares_of_low_degrees_are_null_without_them(graph: Data, logits: np.ndarray) -> None:
    for by, known in (("degree", True), ("core", False), (np.arange(NODES) % 3, False)):
        found = json.loads(json.dumps(rg.audit(graph, logits, by=by, **FEW).to_dict()))
        for each in found["models"][0]["worst"]:
            assert (each["low_share"] is not None) == known
            assert (each["low_share_of_all"] is not None) == known


@pytest.mark.parametrize("masked", [False, True])
def test_a_temperature_at_its_bound_is_no_blur(graph: Data, masked: bool) -> None:
    """Right everywhere: every sharper model is better, which does not tell of a blurred one."""
    scores = 0.1 * torch.nn.functional.one_hot(graph.y).double()
    evaluate = "test" if masked else None
    model = rg.audit(graph, scores, scores="logits", evaluate=evaluate, **FEW).models[0]
    assert model.scaling is not None
    assert model.scaling.temperature == pytest.approx(1e-3)
    assert not model.scaling.under_confident
    (warning,) = model.warnings
    kind, other = ("validation", "evaluated") if masked else ("evaluated", "validation")
    assert f"{kind} nodes" in warning
    assert f"{other} nodes" not in warning
    assert kind in model.scaling.fitted_on
    assert model.scaling.outcome in warning


def test_nodes_with_a_value_of_their_own(graph: Data, logits: np.ndarray, tmp_path: Path) -> None:
    found = rg.audit(graph, logits, by=("rank", np.arange(NODES)), **FEW)
    assert found.models[0].permutation.draws == 0
    assert "cannot change it, as each node has a group of its own" in str(found)
    found.to_html(tmp_path / "page.html")
    assert "no shuffling can change the bias" in (tmp_path / "page.html").read_text()


def test_arrays_and_half_precision_are_taken(graph: Data, logits: np.ndarray) -> None:
    values = np.arange(NODES) % 3
    for by in (values, values.tolist(), torch.from_numpy(values)):
        found = rg.audit(graph, logits, by=by, **FEW)
        assert found.column == "column"
        assert [group.nodes for group in found.models[0].groups] == [50, 50, 50]
    half = torch.from_numpy(logits).bfloat16()
    ours, single = (rg.audit(graph, each, **FEW) for each in (half, half.float()))
    assert ours.models[0].bias == single.models[0].bias


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": None}, "by must be one of degree"),
        ({"by": 3}, "by must be one of degree"),
        ({"by": np.arange(7)}, "'column' has the shape"),
        ({"by": ("age", None)}, "by must be one of degree"),
        ({"by": [[1], [2, 3]]}, "by must be one of degree"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": None}, "seed must be a whole number"),
        ({"resamples": "many"}, "resamples must be a whole number"),
        ({"resamples": 150.5}, "resamples must be a whole number"),
        ({"resamples": 5}, "too few"),
        ({"bins": 4}, "bins must be a string"),
        ({"evaluate": "some"}, "unknown choice of nodes"),
        ({"scores": None}, "unknown format of scores"),
        ({"shown": "all"}, "shown must be a whole number"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(
    graph: Data, logits: np.ndarray, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RawlsError, match=said) as error:
        rg.audit(graph, logits, **{**FEW, **options})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", [None, 3.5, "", np.zeros((2, 3, 4)), torch.zeros(3).cfloat()])
def test_predictions_that_are_none(graph: Data, given: Any) -> None:
    with pytest.raises(RawlsError) as error:
        rg.audit(graph, given, **FEW)
    assert "\n" not in str(error.value)


def test_a_graph_that_is_none(logits: np.ndarray) -> None:
    with pytest.raises(RawlsError, match="must be a torch_geometric Data"):
        rg.audit(np.eye(3), logits, **FEW)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def named() -> Data:
    """A graph with ids and classes that are words."""
    graph = rg.synthetic(120, classes=3)
    graph.node_ids = [f"n{i}" for i in range(120)]
    graph.class_names = ["cat", "dog", "eel"]
    return graph


def accuracy_of(graph: Data, predictions: Any, **options: Any) -> float:
    found = rg.audit(graph, predictions, evaluate="labeled", resamples=100, **options)
    return float(found.models[0].accuracy.value)


def test_a_frame_is_read_by_its_index_and_columns(named: Data) -> None:
    random = np.random.default_rng(0)
    scores = random.random((120, 3)) + 0.5 * np.eye(3)[named.y.numpy()]
    frame = pd.DataFrame(scores, index=named.node_ids, columns=named.class_names)
    wanted = accuracy_of(named, scores)
    for each in (frame, frame.sample(frac=1, random_state=0), frame[["eel", "dog", "cat"]]):
        assert accuracy_of(named, each) == pytest.approx(wanted)
    assert accuracy_of(named, pd.DataFrame(scores)) == pytest.approx(wanted)
    some = rg.audit(named, frame.iloc[:50], evaluate="labeled", resamples=100)
    assert some.how.nodes == 50
    with pytest.raises(RawlsError, match="has no score of the class 'eel'"):
        rg.audit(named, frame.rename(columns={"eel": "bat"}))
    with pytest.raises(RawlsError, match="node elsewhere is not in the graph"):
        rg.audit(named, frame.rename(index={"n3": "elsewhere"}))


def test_a_frame_has_the_columns_of_a_file(named: Data, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = random.choice(named.class_names, 120)
    frame = pd.DataFrame({"node": named.node_ids, "y_true": "cat", "y_pred": words})
    wanted = accuracy_of(named, words)
    assert accuracy_of(named, frame.sample(frac=1, random_state=0)) == wanted
    assert accuracy_of(named, frame.drop(columns="y_true")) == wanted
    assert accuracy_of(named, frame.set_index("node")) == wanted
    scores = pd.DataFrame(random.random((120, 3)), columns=named.class_names)
    lists = pd.DataFrame({"node": named.node_ids, "scores": scores.to_numpy().tolist()})
    assert accuracy_of(named, lists, scores="logits") == accuracy_of(named, scores, scores="logits")
    marked = scores.assign(node=named.node_ids, split="test")
    marked.loc[:99, "split"] = "train"
    marked.to_csv(tmp_path / "model 1.csv", index=False)
    of_file, of_frame = (
        rg.audit(named, each, scores="logits", resamples=100)
        for each in (tmp_path / "model 1.csv", marked)
    )
    assert of_frame.how.evaluated == of_file.how.evaluated
    mine, theirs = of_frame.to_frame(), of_file.to_frame().assign(model="model 1")
    pd.testing.assert_frame_equal(mine, theirs)
    assert of_frame.notes == of_file.notes


def test_predictions_of_some_nodes_need_their_ids(named: Data) -> None:
    scores, test = np.random.default_rng(0).random((120, 3)), named.test_mask.numpy()
    with pytest.raises(RawlsError, match="give those of all nodes, or a DataFrame or Series with"):
        rg.audit(named, scores[test])
    frame = pd.DataFrame(scores, columns=named.class_names)
    with pytest.raises(RawlsError, match="give those of all nodes, or a DataFrame"):
        rg.audit(named, frame[:50])
    with pytest.raises(RawlsError, match="give the node ids as index= or column"):
        rg.audit(named, frame[test])
    frame.index = pd.Index(named.node_ids)
    found = rg.audit(named, frame[test], scores="logits", resamples=100)
    assert found.how.nodes == test.sum()


def test_predicted_words_are_classes(named: Data) -> None:
    words = np.array(named.class_names, dtype=object)[named.y.numpy()]
    assert accuracy_of(named, words) == 100
    series = pd.Series(words, index=named.node_ids)
    assert accuracy_of(named, series.sample(frac=1, random_state=0)) == 100
    with pytest.raises(RawlsError, match=r"row 2 .* is 'bat': .* \(cat, dog, eel\)"):
        rg.audit(named, np.where(words == "eel", "bat", words))


def test_a_series_to_group_by_is_read_by_its_index(named: Data) -> None:
    town = pd.Series(["Bath", "York"] * 60, index=named.node_ids, name="town")
    results = [
        rg.audit(named, named.y.numpy(), by=by, evaluate="labeled", resamples=100).to_frame()
        for by in (town, town.sample(frac=1, random_state=0))
    ]
    pd.testing.assert_frame_equal(*results)


def test_arrays_are_read_as_columns_of_a_file_are(graph: Data, named: Data) -> None:
    """Numbers as objects are numbers; a cell that is none is named with its row."""
    classes = np.arange(NODES) % 3
    for given in (classes.astype(object), classes.astype(str), classes.astype(">i2")):
        assert rg.audit(graph, given, **FEW).models[0].accuracy.value == 100
    scores = np.eye(3)[classes]
    scores[7, 1] = np.nan
    with pytest.raises(RawlsError, match=r"'mine', row 7 .*column 'scores\[:, 1\]' is empty or"):
        rg.audit(graph, {"mine": scores}, **FEW)
    with pytest.raises(RawlsError, match=r"row 0 .* is 'cat': every predicted node needs numbers"):
        rg.audit(graph, np.array(["cat"] * NODES), **FEW)
    with pytest.raises(RawlsError, match=r"row 3 .* is '0\.5x': .* \(cat, dog, eel\)"):
        rg.audit(named, np.where(np.arange(120) == 3, "0.5x", "cat").astype(object), **FEW)
