"""The portrait of a graph agrees with definitions written out naively."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from rawlsgcn.evaluation.portrait import Portrait, degrees_in_laplacian
from rawlsgcn.graphs import check


def graph(pairs: list[tuple[int, int]], nodes: int, y: list[int] | None = None) -> Data:
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    edges = coalesce(to_undirected(remove_self_loops(edges)[0], num_nodes=nodes))
    data = Data(edge_index=edges, num_nodes=nodes)
    if y is not None:
        data.y = torch.tensor(y)
    return check(data, need_features=False, need_labels=False)


small = st.integers(2, 12).flatmap(
    lambda nodes: st.tuples(
        st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=40),
        st.just(nodes),
        st.lists(st.integers(-1, 2), min_size=nodes, max_size=nodes).filter(
            lambda y: max(y) < nodes
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(small)
def test_the_figures_are_those_of_the_dense_matrices(drawn) -> None:
    pairs, nodes, labels = drawn
    data = graph(pairs, nodes, labels)
    portrait = Portrait.of(data)
    dense = np.zeros((nodes, nodes))
    dense[tuple(data.edge_index.numpy())] = 1
    degree = dense.sum(1)
    scale = np.diag(1 / np.sqrt(degree + 1))
    weight = (scale @ (dense + np.eye(nodes)) @ scale).sum(1)
    np.testing.assert_allclose(degrees_in_laplacian(data)[1], weight)
    quarter = np.percentile(degree, [25, 75])
    assert portrait.weight_ratio == pytest.approx(
        weight[degree >= quarter[1]].mean() / weight[degree <= quarter[0]].mean()
    )
    assert portrait.isolated == (degree == 0).sum()
    assert sum(band.nodes for band in portrait.bands) == nodes
    assert all(before.high < after.low for before, after in pairwise(portrait.bands))
    y = np.array(labels)
    joined = [
        y[u] == y[v]
        for u in range(nodes)
        for v in range(nodes)
        if dense[u, v] and min(y[u], y[v]) >= 0
    ]
    if joined:
        assert portrait.homophily == pytest.approx(np.mean(joined))
    else:
        assert math.isnan(portrait.homophily)


def test_labels_at_random_have_no_adjusted_homophily_and_blocks_have_all() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 2000, (20_000, 2))
    y = rng.choice(3, 2000, p=[0.7, 0.2, 0.1])
    by_chance = Portrait.of(graph(pairs.tolist(), 2000, y.tolist()))
    assert by_chance.homophily > 0.5
    assert abs(by_chance.adjusted_homophily) < 0.03
    inside = pairs[y[pairs[:, 0]] == y[pairs[:, 1]]]
    assert Portrait.of(graph(inside.tolist(), 2000, y.tolist())).adjusted_homophily == 1


def test_components_and_isolated_nodes_are_counted() -> None:
    portrait = Portrait.of(graph([(0, 1), (1, 2), (3, 4)], 7))
    assert (portrait.components, portrait.isolated, portrait.edges) == (4, 2, 3)
    assert portrait.largest_component == pytest.approx(3 / 7)
    assert portrait.few == 1
