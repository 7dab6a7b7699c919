"""The synthetic graph: what it promises of its degrees, its words and its size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check, graph_notes, statistics, synthetic


@pytest.fixture(scope="module")
def graph():  # type: ignore[no-untyped-def]
    return synthetic()


def test_the_default_graph_is_labeled_synthetic_and_has_the_papers_split(graph) -> None:  # type: ignore[no-untyped-def]
    assert graph.synthetic is True
    assert graph.name == "synthetic"
    assert "synthetic" in graph_notes(graph)[0]
    figures = statistics(graph)
    assert figures.nodes == 3000
    assert figures.classes == 6
    assert [int(m.sum()) for m in (graph.train_mask, graph.val_mask, graph.test_mask)] == [
        120,
        500,
        1000,
    ]
    assert graph.x.layout == torch.strided
    sparse = synthetic(sparse=True).x
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), graph.x)


def test_validation_does_not_change_it(graph) -> None:  # type: ignore[no-untyped-def]
    clean = check(graph)
    assert torch.equal(clean.edge_index, graph.edge_index)
    assert clean.facts == graph.facts
    assert clean.synthetic is True


def test_degrees_follow_a_power_law_with_isolated_nodes(graph) -> None:  # type: ignore[no-untyped-def]
    degree = torch.bincount(graph.edge_index[0], minlength=3000).numpy()
    assert 30 <= (degree == 0).sum() <= 200
    assert 12 <= degree.mean() <= 14
    assert degree.max() > 20 * np.median(degree)
    # Hill's estimate of the exponent over the top tenth.
    top = np.sort(degree)[-300:].astype(float)
    assert 2.0 < 1 + 1 / np.log(top / top[0]).mean() < 3.0


def test_edges_and_words_tell_of_the_class_but_not_all(graph) -> None:  # type: ignore[no-untyped-def]
    same = (graph.y[graph.edge_index[0]] == graph.y[graph.edge_index[1]]).float().mean()
    assert 0.4 < same < 0.65
    words = graph.x.to_dense()
    assert 45 < words.sum(1).mean() < 80
    assert bool(((words == 0) | (words == 1)).all())


def test_the_seed_decides_everything() -> None:
    one, same, other = (synthetic(600, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(one.edge_index, same.edge_index)
    assert torch.equal(one.x.to_dense(), same.x.to_dense())
    assert torch.equal(one.train_mask, same.train_mask)
    assert one.edge_index.shape != other.edge_index.shape or not torch.equal(
        one.edge_index, other.edge_index
    )


def test_small_graphs_share_out_what_they_have() -> None:
    graph = synthetic(300, classes=3)
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert bool((masks.sum(0) == 1).all())
    assert int(graph.train_mask.sum()) == 60
    assert int(graph.test_mask.sum()) == 2 * int(graph.val_mask.sum())


def test_size_and_degree_are_as_asked_in_a_large_graph() -> None:
    figures = statistics(synthetic(50_000, average_degree=12.0, isolated=0.1, words=8))
    assert figures.nodes == 50_000
    assert figures.edges == pytest.approx(600_000, rel=0.05)
    assert figures.isolated_nodes > 5_000 * 0.95


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"num_nodes": 50}, "needs 120 nodes or more"),
        ({"classes": 1}, "at least 2 classes"),
        ({"average_degree": -1.0}, "average degree"),
        ({"features": 3}, "as many features"),
        ({"isolated": 1.5}, "isolated"),
        ({"split": "stored"}, "no stored split"),
    ],
)
def test_impossible_wishes_are_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        synthetic(**arguments)  # type: ignore[arg-type]
