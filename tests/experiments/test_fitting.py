"""The Python door: fit, compare, models kept; and the embedded graph, on which it matters."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.evaluation.calibration import CalibrationOutcome
from rawlsgcn.experiments.result import Result
from rawlsgcn.reporting.tables import results_table


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return rg.compare(rg.synthetic(), seeds=2)


def test_on_the_embedded_graph_a_gcn_is_worse_for_low_degrees(results) -> None:  # type: ignore[no-untyped-def]
    gcn = results[0]
    assert gcn.synthetic
    assert gcn.low_degree_accuracy.mean < gcn.high_degree_accuracy.mean - 8
    assert gcn.by_degree.loc[:3, "loss"].mean() > gcn.by_degree.loc[20:40, "loss"].mean()


def test_on_the_embedded_graph_both_methods_serve_low_degrees_better(results) -> None:  # type: ignore[no-untyped-def]
    gcn, graph, grad = results
    assert graph.bias.mean < gcn.bias.mean / 2
    assert graph.calibrated_bias.mean < gcn.calibrated_bias.mean / 2
    assert grad.calibrated_bias.mean < gcn.calibrated_bias.mean / 2
    assert graph.low_degree_accuracy.mean > gcn.low_degree_accuracy.mean + 5
    assert grad.low_degree_accuracy.mean > gcn.low_degree_accuracy.mean + 5


def test_figures_agree_with_the_logits(results) -> None:  # type: ignore[no-untyped-def]
    result = results[1]
    nodes = result.mask
    right = result.logits[:, nodes].argmax(-1) == result.graph.y[nodes]
    assert result.accuracy.runs == pytest.approx((100 * right.double().mean(1)).tolist())
    assert result.by_degree["count"].sum() == int(nodes.sum())


def test_a_kept_model_gives_the_same_answer_later(results, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for result in results:
        result.save(tmp_path / result.method)
        model = rg.load_model(tmp_path / result.method)
        torch.testing.assert_close(
            model.predict(result.graph), result.probabilities(), rtol=1e-4, atol=1e-5
        )
        other = rg.load_model(tmp_path / result.method, seed=1)
        torch.testing.assert_close(
            other.logits(result.graph), result.logits[1], rtol=1e-4, atol=1e-4
        )


def test_a_model_predicts_on_another_graph_without_labels(results, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    results[2].save(tmp_path)
    other = rg.synthetic(500, seed=4)
    bare = Data(x=other.x, edge_index=other.edge_index)
    probabilities = rg.load_model(tmp_path).predict(bare)
    assert probabilities.shape == (500, 6)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(500))


def test_a_graph_of_ones_own_is_not_touched() -> None:
    graph = rg.synthetic(300, classes=2)
    one_way = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    mine = Data(x=graph.x, y=graph.y, edge_index=one_way)
    result = rg.fit(mine, "gcn", seeds=1, epochs=2)
    assert mine.edge_index is one_way
    assert set(mine.keys()) == {"x", "y", "edge_index"}
    assert any("used in both" in note for note in result.notes)
    assert torch.equal(result.graph.edge_index, graph.edge_index)


def test_negative_features_are_said() -> None:
    graph = rg.synthetic(300, classes=2)
    graph.x = torch.randn(300, 4)
    result = rg.fit(graph, "gcn", seeds=1, epochs=1)
    assert any("negative" in note for note in result.notes)


def test_wrong_calls_are_one_sentence(results) -> None:  # type: ignore[no-untyped-def]
    graph = rg.synthetic(300, classes=2)
    for wrong in (
        lambda: rg.fit(graph, "gnc"),
        lambda: rg.fit(graph, 3),
        lambda: rg.fit(graph, None),
        lambda: rg.fit(graph, ["gcn"]),
        lambda: rg.fit("amazon-foto"),
        *(
            lambda seeds=seeds: rg.fit(graph, seeds=seeds)
            for seeds in (0, -1, 2.5, None, "5", [-1], ["a"], [2**64], [0.5], [1, 1], [], 10**30)
        ),
        lambda: rg.fit(graph, device="tpu"),
        lambda: rg.fit(graph, device=None),
        lambda: rg.fit(graph, engine="quick"),
        lambda: rg.fit(graph, engine=None),
        lambda: rg.compare(graph, []),
        lambda: rg.compare(graph, 5),
        lambda: rg.compare(graph, normalization="rows"),
        lambda: rg.compare(graph, "gcn", normalization="row"),
        lambda: rg.fit(graph, "gcn", normalization="row"),
        lambda: rg.tune(graph, 3),
        lambda: rg.report(None, "page.html"),
        lambda: rg.report([results[0], 5], "page.html"),
        lambda: results[0].probabilities(9),
        lambda: results[0].probabilities("first"),
    ):
        with pytest.raises(rg.RawlsError) as caught:
            wrong()
        assert "\n" not in str(caught.value)


def test_seeds_and_one_method_may_be_given_plainly() -> None:
    graph = rg.synthetic(300, classes=2)
    (result,) = rg.compare(graph, "gcn", seeds=np.int64(2), epochs=1)
    assert result.seeds == [0, 1]
    given = rg.fit(graph, "gcn", seeds=np.array([5, 3]), epochs=1, device=torch.device("cpu"))
    assert given.seeds == [5, 3]
    assert all(type(seed) is int for seed in given.seeds)


def test_a_normalization_goes_to_the_methods_that_have_a_choice() -> None:
    graph = rg.synthetic(300, classes=2)
    results = rg.compare(graph, seeds=1, epochs=1, normalization="row")
    assert [result.normalization for result in results] == ["renormalized", "row", "row"]
    told = [any("no choice" in note for note in result.notes) for result in results]
    assert told == [True, False, False]


def test_a_training_that_diverged_says_so() -> None:
    result = rg.fit(rg.synthetic(300, classes=2), "gcn", seeds=2, epochs=5, lr=1e30)
    (note,) = [note for note in result.notes if "diverged" in note]
    assert "seeds 0, 1" in note
    assert "nan" not in str(result)
    assert "bias –" in str(result)
    fine = rg.fit(rg.synthetic(300, classes=2), "gcn", seeds=1, epochs=5)
    assert not any("diverged" in note for note in fine.notes)


def test_a_blurred_model_carries_a_caution() -> None:
    blurred = rg.fit(rg.synthetic(300), "rawlsgcn-graph", seeds=1, epochs=8)
    (judgement,) = blurred.run_metrics
    assert judgement.temperature < 0.8
    assert "under-confident" in blurred.to_dict()["caution"]
    assert "under-confident" in str(blurred)
    for change in ({"temperature": 1.3}, {"calibration": CalibrationOutcome.SEPARABLE}):
        sure = replace(blurred, run_metrics=[replace(judgement, **change)])
        assert sure.to_dict()["caution"] is None
        assert "under-confident" not in str(sure)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, rawlsgcn; assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_what_is_a_methods_own_memory_is_called_so() -> None:
    """On the CPU the peak is the process's: beside other methods it is nobody's."""
    graph = rg.synthetic(300, classes=2)
    alone = rg.fit(graph, "gcn", seeds=1, epochs=1, device="cpu")
    assert alone.peak_memory_mb > 0
    (only,) = rg.compare(graph, ["gcn"], seeds=1, epochs=1, device="cpu")
    assert only.peak_memory_mb > 0
    for result in rg.compare(graph, seeds=1, epochs=1, device="cpu"):
        assert math.isnan(result.peak_memory_mb)
        assert result.to_dict()["peak_memory_mb"] is None
    for trial in rg.tune(graph, "gcn", {"lr": [0.1, 0.2]}, seeds=1, epochs=1).trials:
        assert math.isnan(trial.peak_memory_mb)


def unlearned(graph: Data) -> Result:
    """A model that names one class for every node, at no bias at all."""
    result = rg.fit(graph, "gcn", seeds=3, epochs=1)
    constant = torch.zeros_like(result.logits)
    constant[..., 0] = 1
    bias = [replace(each, bias=0.0, calibrated_bias=0.0) for each in result.run_metrics]
    return replace(result, logits=constant, run_metrics=bias, notes=[])


def test_a_model_that_has_not_learned_is_told_from_one_that_has() -> None:
    graph = rg.synthetic(600, classes=4)
    learned = rg.fit(graph, "rawlsgcn-graph", seeds=3, epochs=60)
    assert learned.failure is None
    assert learned.failed == ""
    assert learned.not_learned == []
    assert learned.training_accuracy.mean > 80
    constant = unlearned(graph)
    assert constant.not_learned == [0, 1, 2]
    assert constant.failure is not None
    assert constant.failure.startswith("GCN has not learned: training accuracy 25 % on 4 classes")
    assert constant.to_dict()["not_learned"] == [0, 1, 2]
    assert "has not learned" in str(constant)
    assert "worst-off" not in str(constant)


def test_half_of_the_runs_decide_whether_a_method_has_learned() -> None:
    graph = rg.synthetic(600, classes=4)
    learned = rg.fit(graph, "rawlsgcn-graph", seeds=3, epochs=60)
    for count, sound in ((1, True), (2, False)):
        logits = learned.logits.clone()
        logits[:count] = unlearned(graph).logits[:count]
        mixed = replace(learned, logits=logits)
        assert mixed.not_learned == list(range(count))
        assert (mixed.failure is None) == sound


def test_training_says_in_its_notes_that_nothing_was_learned() -> None:
    graph = rg.synthetic(600, classes=4)
    slow = rg.fit(graph, "gcn", seeds=2, epochs=1, lr=1e-9)
    assert slow.failure in slow.notes
    assert not any("learned" in note for note in rg.fit(graph, epochs=60).notes)


def test_no_figure_of_a_model_that_has_not_learned_is_called_the_best() -> None:
    from rich.console import Console

    graph = rg.synthetic(600, classes=4)
    learned = [rg.fit(graph, name, seeds=3, epochs=60) for name in ("rawlsgcn-graph", "gcn")]
    console = Console(width=140, record=True, color_system="standard", force_terminal=True)
    console.print(results_table([unlearned(graph), *learned]))
    text = console.export_text(styles=True)
    (row,) = [line for line in text.splitlines() if "has not learned" in line]
    assert "0.000" in row
    assert "\x1b[1;32m" not in row
    assert "\x1b[1;32m" in text
