"""The lift, against a dense reference in double precision that compares all pairs of nodes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import rawlsgcn as rg
from rawlsgcn import RawlsError
from rawlsgcn.graphs import lift_low_degrees
from rawlsgcn.graphs.lifting import nearest_nodes
from rawlsgcn.graphs.tf_idf import tf_idf

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def reference(edges: Tensor, features: Tensor, least: int) -> set[tuple[int, int]]:
    """The edges to add, each once, by comparing every pair of nodes."""
    x = features.to_dense().double().numpy()
    length = np.linalg.norm(x, axis=1)
    unit = np.divide(x, length[:, None], out=np.zeros_like(x), where=length[:, None] > 0)
    cosine = (unit @ unit.T).round(10)
    neighbors: list[set[int]] = [set() for _ in x]
    for i, j in edges.t().tolist():
        neighbors[i].add(j)
    added = set()
    for i, own in enumerate(neighbors):
        others = [j for j in range(len(x)) if j != i and j not in own and cosine[i, j] > 0]
        others.sort(key=lambda j: (-cosine[i, j], j))
        added |= {(min(i, j), max(i, j)) for j in others[: max(least - len(own), 0)]}
    return added


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    upper = np.triu(rng.random((nodes, nodes)) < draw(st.sampled_from([0.0, 0.1, 0.4])), 1)
    edges = torch.from_numpy(np.stack(np.nonzero(upper | upper.T)))
    width = draw(st.integers(1, 6))
    x = (rng.random((nodes, width)) < 0.5) * rng.random((nodes, width))
    kind = draw(st.sampled_from(["floats", "ones", "signed", "repeated"]))
    if kind == "ones":
        x = (x > 0).astype(float)
    elif kind == "signed":
        x = rng.standard_normal((nodes, width))
    elif kind == "repeated":
        x = x[rng.integers(0, max(nodes // 4, 1), nodes)]
    features = torch.from_numpy(x)
    if draw(st.booleans()):
        features = features.float()
    if draw(st.booleans()):
        features = features.to_sparse_csr()
    weight = torch.rand(edges.shape[1]) if draw(st.booleans()) else None
    least = draw(st.integers(0, 12))
    return {"edge_index": edges, "features": features, "edge_weight": weight, "min_degree": least}


def undirected(edges: Tensor) -> set[tuple[int, int]]:
    return {(i, j) for i, j in edges.t().tolist() if i < j}


@settings(max_examples=150, deadline=None)
@given(case=cases(), path=st.sampled_from(["chosen", "dense", "product", "entries"]))
def test_it_adds_the_edges_of_the_reference(case: dict[str, Any], path: str) -> None:
    """... by every way to compute the products, and in blocks of a few rows."""
    edges, weight, least = case["edge_index"], case["edge_weight"], case["min_degree"]
    with pytest.MonkeyPatch.context() as patch:
        if path != "chosen":
            patch.setattr(nearest_nodes, "_SPARSE_COST", 1e9 if path == "dense" else 0)
            patch.setattr(nearest_nodes, "_FEW_PRODUCTS", 1e9 if path == "entries" else 0)
            patch.setattr(nearest_nodes, "_BLOCK_BYTES", 512)
            patch.setattr(nearest_nodes, "_PART_BYTES", 128)
            patch.setattr(nearest_nodes, "_SPARE", 0)
        lifted = lift_low_degrees(**case)
    added = reference(edges, case["features"], least)
    assert undirected(lifted.edge_index) == undirected(edges) | added
    assert lifted.added == len(added)
    assert lifted.search == "exact"

    nodes = len(case["features"])
    degree, before = (torch.bincount(e[0], minlength=nodes) for e in (lifted.edge_index, edges))
    assert lifted.lifted == int((before < least).sum())
    row, column = lifted.edge_index
    assert (row != column).all()
    key = row * nodes + column
    assert torch.equal(key, key.unique())  # sorted, each once
    assert torch.equal(key, (column * nodes + row).sort().values)  # symmetric
    given_key = edges[0] * nodes + edges[1]
    given_edge = torch.isin(key, given_key)
    assert int(given_edge.sum()) == edges.shape[1]
    if weight is None:
        assert lifted.edge_weight is None
    else:
        assert torch.equal(lifted.edge_weight[given_edge], weight[given_key.argsort()])
        assert (lifted.edge_weight[~given_edge] == 1).all()

    again = lift_low_degrees(**case)
    assert torch.equal(again.edge_index, lifted.edge_index)
    # Each reaches the least degree, unless too few nodes have a positive cosine with it.
    x = torch.nn.functional.normalize(case["features"].to_dense().double())
    alike = (x @ x.t()).numpy().round(10) > 0
    alike[np.arange(nodes), np.arange(nodes)] = False
    alike[edges[0], edges[1]] = True
    assert (degree.numpy() >= np.minimum(least, alike.sum(1))).all()


def test_high_degrees_choose_nothing() -> None:
    """A star's center is near its leaves only; each leaf chooses among the leaves."""
    leaves = torch.arange(1, 13)
    center = torch.zeros_like(leaves)
    star = torch.cat([torch.stack([center, leaves]), torch.stack([leaves, center])], 1)
    alone = lift_low_degrees(star, torch.ones(13, 1), min_degree=1)
    assert (alone.added, alone.lifted) == (0, 0)
    lifted = lift_low_degrees(star, torch.ones(13, 1), min_degree=3)
    assert lifted.lifted == 12
    assert int((lifted.edge_index[0] == 0).sum()) == 12
    # Of equally near leaves the first two: all others choose 1 and 2, and those choose 2, 1 and 3.
    chosen = {(1, i) for i in range(2, 13)} | {(2, i) for i in range(3, 13)}
    assert undirected(lifted.edge_index) == undirected(star) | chosen


@pytest.mark.parametrize("sparse", [False, True])
def test_hundreds_of_equal_nodes(sparse: bool) -> None:
    """One category as the only feature: no node of the category is joined to all the others."""
    features = torch.eye(4)[torch.arange(2000) % 4]
    lifted = lift_low_degrees(NO_EDGES, features.to_sparse_csr() if sparse else features)
    row, column = lifted.edge_index
    assert (row % 4 == column % 4).all()
    degree = torch.bincount(row)
    assert (degree >= 10).all()
    assert int(degree.max()) <= 20
    other = lift_low_degrees(NO_EDGES, features if sparse else features.to_sparse_csr())
    assert torch.equal(other.edge_index, lifted.edge_index)


def test_real_features_give_the_edges_of_the_reference() -> None:
    graph = rg.synthetic(300, classes=3, sparse=True)
    features = tf_idf(graph.x)
    lifted = lift_low_degrees(graph.edge_index, features, min_degree=6)
    added = reference(graph.edge_index, features, 6)
    assert undirected(lifted.edge_index) == undirected(graph.edge_index) | added
    dense = lift_low_degrees(graph.edge_index, features.to_dense(), min_degree=6)
    assert torch.equal(dense.edge_index, lifted.edge_index)


def test_the_number_of_threads_changes_nothing() -> None:
    features = torch.rand(500, 40, generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append(lift_low_degrees(NO_EDGES, features).edge_index)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*answers)


@pytest.mark.parametrize("setting", ["medium", "one device"])
def test_products_of_low_precision_change_nothing(setting: str) -> None:
    features = torch.rand(300, 40, generator=torch.Generator().manual_seed(0))
    expected = lift_low_degrees(NO_EDGES, features).edge_index

    def mixed() -> str:
        raise RuntimeError("mix of the legacy and new APIs")

    with pytest.MonkeyPatch.context() as patch:
        if setting == "one device":
            patch.setattr(torch, "get_float32_matmul_precision", mixed)
        else:
            torch.set_float32_matmul_precision("medium")
        try:
            lifted = lift_low_degrees(NO_EDGES, features)
        finally:
            torch.set_float32_matmul_precision("highest")
    assert torch.equal(lifted.edge_index, expected)


def test_without_mkl_the_products_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = rg.synthetic(300, classes=3, sparse=True)
    monkeypatch.setattr(nearest_nodes, "_SPARSE_COST", 0)
    expected = lift_low_degrees(graph.edge_index, tf_idf(graph.x)).edge_index
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert torch.equal(lift_low_degrees(graph.edge_index, tf_idf(graph.x)).edge_index, expected)


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_tiny_graphs(nodes: int) -> None:
    lifted = lift_low_degrees(NO_EDGES, torch.ones(nodes, 1))
    assert lifted.edge_index.shape == (2, 2 * lifted.added)
    assert (lifted.added, lifted.lifted) == (int(nodes == 2), nodes)
    assert lift_low_degrees(NO_EDGES, torch.ones(nodes, 0)).added == 0
    assert lift_low_degrees(NO_EDGES, torch.zeros(nodes, 3).to_sparse_csr()).added == 0


def test_a_neighbor_in_either_direction_and_a_self_loop_are_kept() -> None:
    edges = torch.tensor([[0, 2], [1, 2]])
    lifted = lift_low_degrees(edges, torch.ones(3, 1), min_degree=1)
    assert lifted.edge_index.tolist() == [[0, 0, 2, 2], [1, 2, 0, 2]]


def test_features_with_a_gradient_are_compared_without_it() -> None:
    features = torch.rand(30, 4)
    expected = lift_low_degrees(NO_EDGES, features).edge_index
    learned = lift_low_degrees(NO_EDGES, features.clone().requires_grad_())
    assert torch.equal(learned.edge_index, expected)


def test_the_note() -> None:
    lifted = lift_low_degrees(NO_EDGES, torch.ones(3, 1), min_degree=1)
    assert lifted.note == (
        "3 nodes with few neighbors got 2 edges to the nodes with the nearest features, found by "
        "an exact search."
    )
    none = lift_low_degrees(NO_EDGES, torch.ones(3, 1), min_degree=0)
    assert none.note == "no node has few neighbors: no edge was added."


def test_small_graphs_are_searched_approximately_without_a_word_of_the_library(capfd) -> None:
    pytest.importorskip("faiss")
    found = lift_low_degrees(NO_EDGES, torch.ones(3, 1), min_degree=1, search="approximate")
    assert found.added == 2
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"min_degree": -1}, "whole number of at least 0, not -1"),
        ({"min_degree": 2.5}, "whole number of at least 0, not 2.5"),
        ({"search": "quick"}, "search must be 'auto', 'exact', 'approximate', not 'quick'"),
        ({"features": torch.tensor([[1.0], [np.nan]])}, "node 1 has NaN or an infinity"),
        ({"features": torch.ones(3)}, r"a tensor of shape \(n, d\)"),
        ({"features": torch.ones(2, 1, dtype=torch.complex64)}, "real numbers"),
        ({"edge_index": torch.tensor([[0], [5]])}, "got node 5"),
        ({"edge_weight": torch.ones(3)}, "one weight for each edge"),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        lift_low_degrees(**{"edge_index": NO_EDGES, "features": torch.ones(2, 1), **arguments})


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(RawlsError, match=r"pip install 'rawlsgcn\[ann\]'"):
        lift_low_degrees(NO_EDGES, torch.ones(3, 1), search="approximate")


@pytest.mark.parametrize("sparse", [False, True])
def test_most_of_the_nearest_are_found_approximately(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    graph = rg.synthetic(1000, classes=4, sparse=True)
    features = tf_idf(graph.x)
    if not sparse:
        features = torch.randn(1000, 32, generator=torch.Generator().manual_seed(0))
    exact = lift_low_degrees(graph.edge_index, features)
    monkeypatch.setattr("rawlsgcn.graphs.lifting.lifted_graph.MAX_EXACT_NODES", 999)
    found = lift_low_degrees(graph.edge_index, features)
    assert found.search == "approximate"
    assert "by an approximate search (faiss)." in found.note
    assert found.lifted == exact.lifted
    wanted = undirected(exact.edge_index) - undirected(graph.edge_index)
    missing = wanted - undirected(found.edge_index)
    assert len(missing) < 0.1 * len(wanted)
    again = lift_low_degrees(graph.edge_index, features)
    assert torch.equal(again.edge_index, found.edge_index)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_edges_on_a_gpu(sparse: bool) -> None:
    graph = rg.synthetic(600, classes=3, sparse=True)
    features = tf_idf(graph.x) if sparse else tf_idf(graph.x).to_dense()
    lifted = lift_low_degrees(graph.edge_index, features)
    there = lift_low_degrees(graph.edge_index.cuda(), features.cuda())
    assert there.edge_index.is_cuda
    assert torch.equal(there.edge_index.cpu(), lifted.edge_index)
