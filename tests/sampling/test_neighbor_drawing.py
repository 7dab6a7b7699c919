"""Neighborhoods: rows of the graph, numbered as met, and no trace of one sample in the next.

Draws without replacement: right sets, each equally likely, each a function of its key."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.sampling import Adjacency, Neighborhoods, parse_num_neighbors
from rawlsgcn.sampling.neighbor_drawing import Sample, derive_key, draw_offsets


def drawn(graph: Data, seeds: list[int], num_neighbors: list[int], **how: Any) -> Sample:
    adjacency = Adjacency.of_symmetric(graph.edge_index, None, graph.num_nodes)
    return Neighborhoods(adjacency).sample(np.array(seeds), num_neighbors, 7, **how)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 3), st.booleans(), st.integers(-1, 5).filter(bool), st.data())
def test_every_hop_draws_rows_of_the_graph(
    graph: Data, hops: int, redraw: bool, k: int, data: st.DataObject
) -> None:
    nodes = int(graph.num_nodes)
    seeds = data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=5, unique=True))
    sample = drawn(graph, seeds, [k] * hops, redraw=redraw)
    arcs = set(zip(*graph.edge_index.tolist(), strict=True))
    degree = Counter(graph.edge_index[0].tolist())
    assert sample.nodes[: len(seeds)].tolist() == seeds
    assert len(set(sample.nodes.tolist())) == len(sample.nodes) == sum(sample.new)
    for number, hop in enumerate(sample.hops):
        met = sum(sample.new[: number + 1])
        first = 0 if redraw else met - sample.new[number]
        assert (hop.first, len(hop.drawn)) == (first, met - first)
        pairs = list(
            zip(sample.nodes[hop.target].tolist(), sample.nodes[hop.source].tolist(), strict=True)
        )
        assert len(set(pairs)) == len(pairs)
        assert set(pairs) <= arcs
        for place, count in enumerate(hop.drawn, start=first):
            d = degree[int(sample.nodes[place])]
            assert count == (d if k < 0 else min(k, d))
    if k < 0:
        reached = k_hop_subgraph(seeds, hops, graph.edge_index, num_nodes=nodes)[0]
        assert sorted(sample.nodes.tolist()) == reached.tolist()


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_a_sample_leaves_nothing_behind(graph: Data) -> None:
    adjacency = Adjacency.of_symmetric(graph.edge_index, None, graph.num_nodes)
    used = Neighborhoods(adjacency)
    used.sample(np.arange(graph.num_nodes), [3, 2], 1)
    again = used.sample(np.array([0]), [2, 2], 5)
    fresh = Neighborhoods(adjacency).sample(np.array([0]), [2, 2], 5)
    assert again.nodes.tolist() == fresh.nodes.tolist()
    for one, other in zip(again.hops, fresh.hops, strict=True):
        assert (one.arc == other.arc).all()


def test_arcs_run_into_the_nodes_whose_rows_they_are() -> None:
    edge_index = torch.tensor([[2, 0, 1, 3], [0, 3, 0, 2]])
    adjacency = Adjacency.of(edge_index, torch.tensor([5.0, 6.0, 7.0, 8.0]), 4)
    assert adjacency.degree.tolist() == [2, 0, 1, 1]
    assert adjacency.sources(np.array([0, 1, 2, 3])).tolist() == [2, 1, 3, 0]
    assert adjacency.arc_weights(np.array([3, 1])).tolist() == [6.0, 7.0]
    assert adjacency.order is not None
    assert adjacency.order.tolist() == [0, 2, 3, 1]


@pytest.mark.parametrize("num_neighbors", ["", "10,", "a", [], [0], [-2], [1.5], None, "10;10", 3])
def test_a_bad_fan_out_is_told(num_neighbors: Any) -> None:
    with pytest.raises(RawlsError, match="num_neighbors must have a whole number for each layer"):
        parse_num_neighbors(num_neighbors)


def test_a_fan_out_may_be_text() -> None:
    assert parse_num_neighbors("15, 10,-1") == (15, 10, -1) == parse_num_neighbors([15, 10, -1])


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 12), st.integers(0, 2**64)
)
def test_a_row_gets_different_neighbours_and_all_where_there_are_few(
    degrees: list[int], k: int, seed: int
) -> None:
    degree = np.array(degrees)
    offsets, drawn = draw_offsets(np.arange(len(degree)), degree, k, derive_key(seed))
    assert (drawn == np.minimum(degree, k)).all()
    for row, count, d in zip(offsets, drawn, degree, strict=True):
        taken = row[:count]
        assert len(set(taken.tolist())) == count
        assert ((taken >= 0) & (taken < d)).all()


def test_a_fan_out_above_every_degree_costs_what_the_degrees_cost() -> None:
    nodes, degree = np.arange(300), np.arange(300) % 7
    offsets, drawn = draw_offsets(nodes, degree, 10**6, derive_key(1))
    assert offsets.shape == (300, 6)
    assert (drawn == degree).all()


@given(st.integers(1, 8), st.integers(0, 2**63))
def test_a_row_that_takes_all_takes_them_in_order(k: int, seed: int) -> None:
    """... so that it is the same beside rows of any degree."""
    offsets, drawn = draw_offsets(np.arange(10), np.arange(10), k, derive_key(seed))
    for row, count, d in zip(offsets, drawn, range(10), strict=True):
        if d <= k:
            assert row[:count].tolist() == list(range(d))


def test_every_set_is_equally_likely() -> None:
    rows, d, k = 60_000, 6, 3
    offsets, _ = draw_offsets(np.arange(rows), np.full(rows, d), k, derive_key(1))
    counts = Counter(map(tuple, np.sort(offsets, 1).tolist()))
    sets = list(combinations(range(d), k))
    expected = rows / len(sets)
    chi = sum((counts[each] - expected) ** 2 / expected for each in sets)
    assert set(counts) == set(sets)
    assert chi < 43.8  # the 99.9th percentile for 19 degrees of freedom


@given(st.integers(0, 2**63), st.permutations(range(12)))
def test_a_draw_does_not_depend_on_the_rest_of_the_batch(seed: int, order: list[int]) -> None:
    nodes, degree = np.arange(100, 112), np.arange(5, 17)
    whole, _ = draw_offsets(nodes, degree, 4, derive_key(seed))
    moved, _ = draw_offsets(nodes[order], degree[order], 4, derive_key(seed))
    assert (moved == whole[order]).all()


def test_keys_tell_their_parts_and_their_order_apart() -> None:
    keys = {derive_key(a, b) for a in range(30) for b in range(30)} | {
        derive_key(a) for a in range(30)
    }
    assert len(keys) == 930
