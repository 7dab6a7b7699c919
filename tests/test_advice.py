"""The advice follows the graph, stands on the committed results, and admits what it cannot know."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn.advice import Case
from rawlsgcn.cli import app
from rawlsgcn.errors import RawlsError
from rawlsgcn.evaluation.costs import Costs
from rawlsgcn.evaluation.evidence import MEASURED
from rawlsgcn.evaluation.portrait import Portrait

ROOT = Path(__file__).resolve().parents[1]


def ring(nodes: int) -> Data:
    here = torch.arange(nodes)
    return Data(edge_index=torch.stack([here, here.roll(1)]), num_nodes=nodes)


def blocks(seed: int = 0, **changes) -> Data:
    return rg.synthetic(2000, seed=seed, **changes)


def without(graph: Data, *names: str) -> Data:
    kept = {key: value for key, value in graph.to_dict().items() if key not in names}
    return Data(**kept)


def test_the_advice_changes_with_the_graph() -> None:
    uneven = rg.advise(blocks())
    assert uneven.case is Case.STRONG
    assert uneven.first == "rawlsgcn-graph"
    assert "Amazon-Photo" in " ".join(uneven.reasons)
    even = rg.advise(ring(600))
    assert even.case is Case.EVEN
    assert even.first == "gcn"
    assert even.compared == ("gcn",)
    assert "no ground" in even.headline


def test_shuffled_labels_turn_the_advice() -> None:
    graph = blocks()
    order = torch.randperm(len(graph.y), generator=torch.Generator().manual_seed(0))
    graph.y = graph.y[order]
    advice = rg.advise(graph)
    assert advice.case is Case.UNLIKE
    assert "not known" in advice.headline
    assert "Chameleon" in " ".join(advice.reasons)


def test_without_labels_it_says_what_it_does_not_know() -> None:
    graph = without(blocks(), "y", "train_mask", "val_mask", "test_mask", "x")
    advice = rg.advise(graph)
    assert advice.case is Case.STRONG
    assert any("Without labels" in caution for caution in advice.cautions)
    assert len(advice.costs.supposed) == 2
    assert advice.to_dict()["portrait"]["homophily"] is None


def test_isolated_nodes_and_small_graphs_are_warned_of() -> None:
    lone = rg.advise(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=40))
    assert any("no neighbours" in caution for caution in lone.cautions)
    assert any("small" in caution for caution in lone.cautions)
    nothing = rg.advise(Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=5))
    assert nothing.case is Case.EVEN


def test_what_is_no_graph_is_one_sentence() -> None:
    with pytest.raises(RawlsError, match="torch_geometric Data"):
        rg.advise(3)  # type: ignore[arg-type]
    with pytest.raises(RawlsError, match="unknown"):
        rg.advise("amazon-fotos")


def test_every_case_that_was_measured_has_its_graphs() -> None:
    cases = {each.name: Case.of(each.weight_ratio, each.adjusted_homophily) for each in MEASURED}
    assert set(cases.values()) == set(Case) - {Case.EVEN}
    assert cases["amazon-photo"] is cases["amazon-computers"] is Case.STRONG
    assert cases["chameleon"] is Case.UNLIKE


@pytest.mark.parametrize("measured", MEASURED, ids=lambda each: each.name)
def test_the_evidence_is_what_was_committed(measured) -> None:
    path = ROOT / "results" / "defaults" / f"{measured.name}.json"
    if not path.is_file():
        pytest.skip("the committed results are not here")
    figures = {each["method"]: each for each in json.loads(path.read_text())}
    for method, said in (
        ("gcn", measured.gcn),
        ("rawlsgcn-graph", measured.graph),
        ("rawlsgcn-grad", measured.grad),
    ):
        assert said.accuracy == pytest.approx(figures[method]["accuracy"]["mean"], abs=0.051)
        assert said.low == pytest.approx(figures[method]["low_degree_accuracy"]["mean"], abs=0.051)
        bias = figures[method]["calibrated_bias"]["mean"]
        assert said.calibrated_bias == pytest.approx(bias, abs=5.1e-4)


def test_the_page_of_the_rules_has_these_numbers() -> None:
    text = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    for each in MEASURED:
        alike = Case.of(each.weight_ratio, each.adjusted_homophily) is not Case.UNLIKE
        figure = each.weight_ratio if alike else each.adjusted_homophily
        row = next(line for line in text.splitlines() if f"{each.title} ({figure:.2f})" in line)
        for changed in (each.graph, each.grad):
            assert f"{changed.low - each.gcn.low:+.1f}".replace("-", "\N{MINUS SIGN}") in row


def test_the_choices_are_those_that_the_evidence_favours() -> None:
    """Graph first where it serves low degrees best; Grad first where its price is lower."""
    for each in MEASURED:
        case = Case.of(each.weight_ratio, each.adjusted_homophily)
        if case is Case.STRONG:
            assert each.graph.low > each.grad.low > each.gcn.low
        if case is Case.UNEVEN:
            assert each.graph.accuracy < each.grad.accuracy
            assert each.graph.low < each.gcn.low
        if case is Case.UNLIKE:
            assert max(each.graph.low, each.grad.low) < each.gcn.low
        if case is Case.SLIGHT:
            assert abs(each.graph.low - each.gcn.low) < 1


def test_costs_grow_with_the_graph_and_stay_near_the_committed_scaling() -> None:
    """benchmarks/results-cpu.json: seconds an epoch of five runs, prepared."""
    path = ROOT / "benchmarks" / "results-cpu.json"
    if not path.is_file():
        pytest.skip("the committed benchmarks are not here")
    rows = [
        row for part in json.loads(path.read_text()) for row in part.get("training_scaling", [])
    ]
    checked = 0
    for row in rows:
        if row["nodes"] > 5000:
            continue
        graph = rg.synthetic(row["nodes"], average_degree=20, features=100, words=8)
        if row["training_nodes"] != "20 a class":
            draw = torch.rand(row["nodes"], generator=torch.Generator().manual_seed(0))
            graph.train_mask = draw < 0.5
        epoch = (Costs.of(graph, epochs=101).seconds - Costs.of(graph, epochs=1).seconds) / 100
        assert 0.5 < epoch / row["epoch_seconds"] < 2, row
        checked += 1
    assert checked == 4
    small, large = (Costs.of(rg.synthetic(nodes)) for nodes in (500, 5000))
    assert small.seconds < large.seconds
    assert small.memory_mb < large.memory_mb


def test_memory_stays_near_what_was_measured() -> None:
    path = ROOT / "results" / "advise" / "demo-200000.json"
    if not path.is_file():
        pytest.skip("the committed results are not here")
    peak = max(each["peak_memory_mb"] for each in json.loads(path.read_text()))
    # The estimate grows linearly with the graph: a tenth of it is enough to look at.
    small = Costs.of(rg.synthetic(20_000)).memory_mb - 450
    assert 0.5 < (450 + 10 * small) / peak < 2


def test_the_command_prints_and_writes_the_line_to_type(tmp_path: Path) -> None:
    edges = tmp_path / "my edges.csv"
    graph = blocks()
    np.savetxt(
        edges, graph.edge_index.t().numpy(), fmt="%d", delimiter=",", header="a,b", comments=""
    )
    out = tmp_path / "advice.json"
    done = CliRunner().invoke(app, ["advise", "--graph", str(edges), "--json", str(out)])
    assert done.exit_code == 0, done.output
    told = json.loads(out.read_text())
    assert told["first"] == "rawlsgcn-graph"
    assert (
        f"--graph '{edges}' --features FILE --labels FILE --methods gcn,rawlsgcn-graph"
        in told["command"]
    )
    assert told["headline"].split(":")[0] in done.output
    missing = CliRunner().invoke(app, ["advise"])
    assert missing.exit_code == 2
    assert "either --dataset NAME or --graph FILE" in missing.output


def test_a_small_labelled_graph_needs_no_split(tmp_path: Path) -> None:
    """Nothing is trained; labels that were named must be sound all the same."""
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.csv"
    edges.write_text("a,b\n0,1\n1,2\n2,3\n", encoding="utf-8")
    labels.write_text("node,label\n0,0\n1,0\n2,1\n3,1\n", encoding="utf-8")
    said = ["advise", "--graph", str(edges), "--labels", str(labels)]
    done = CliRunner().invoke(app, said)
    assert done.exit_code == 0, done.output
    assert "split" not in done.output
    assert "67 % of the edges join nodes of one class" in " ".join(done.output.split())
    labels.write_text("node,label\n0,0\n1,0.5\n2,1\n3,1\n", encoding="utf-8")
    done = CliRunner().invoke(app, said)
    assert done.exit_code == 2
    assert "has the label 0.5: labels must be integers" in done.output


def test_the_portrait_is_of_the_graph_asked_about() -> None:
    graph = blocks()
    assert rg.advise(graph).portrait == Portrait.of(graph)
