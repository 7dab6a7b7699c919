"""The Python door: fit, compare, models kept; and the embedded graph, on which it matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.result import Result


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return rg.compare(rg.synthetic(), seeds=2)


def test_on_the_embedded_graph_a_gcn_is_worse_for_low_degrees(results) -> None:  # type: ignore[no-untyped-def]
    gcn = results[0]
    assert gcn.synthetic
    assert gcn.low_degree_accuracy.mean < gcn.high_degree_accuracy.mean - 8
    assert gcn.frame.loc[:3, "loss"].mean() > gcn.frame.loc[20:40, "loss"].mean()


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
    assert result.frame["count"].sum() == int(nodes.sum())


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
    assert any("symmetrised" in note for note in result.notes)
    assert torch.equal(result.graph.edge_index, graph.edge_index)


def test_negative_features_are_said() -> None:
    graph = rg.synthetic(300, classes=2)
    graph.x = torch.randn(300, 4)
    result = rg.fit(graph, "gcn", seeds=1, epochs=1)
    assert any("negative" in note for note in result.notes)


def test_wrong_calls_are_one_sentence() -> None:
    graph = rg.synthetic(300, classes=2)
    for wrong in (
        lambda: rg.fit(graph, "gnc"),
        lambda: rg.fit("amazon-foto"),
        lambda: rg.fit(graph, seeds=0),
        lambda: rg.fit(graph, seeds=[-1]),
        lambda: rg.fit(graph, device="tpu"),
        lambda: rg.fit(graph, engine="quick"),
        lambda: rg.compare(graph, []),
        lambda: rg.fit(graph, "gcn", normalisation="row"),
    ):
        with pytest.raises(rg.RawlsError) as caught:
            wrong()
        assert "\n" not in str(caught.value)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, rawlsgcn; assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
