"""Neighborhoods: rows of the graph, numbered as met, and no trace of one sample in the next."""

from __future__ import annotations

from collections import Counter
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
from rawlsgcn.sampling.neighborhoods import Sample


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
