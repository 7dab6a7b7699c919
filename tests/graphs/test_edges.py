"""Cleaning the edges gives the symmetric matrix that a dense computation gives."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.graphs.edges import clean_edges
from rawlsgcn.graphs.notes import GraphFacts

ARCS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0, 2.0])),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(ARCS)
def test_weighted_edges_equal_the_dense_rule(arcs: list[tuple[int, int, float]]) -> None:
    arcs = arcs or [(0, 1, 1.0)]
    summed = np.zeros((7, 7))
    for source, target, weight in arcs:
        if source != target:
            summed[source, target] += weight
    both = (summed > 0) & (summed.T > 0)
    expected = np.where(both, (summed + summed.T) / 2, summed + summed.T)

    source, target, weight = (np.array(column) for column in zip(*arcs, strict=True))
    edge_index, edge_weight = clean_edges(source, target, weight, 7, GraphFacts())

    dense = np.zeros((7, 7))
    dense[tuple(edge_index.numpy())] = 1 if edge_weight is None else edge_weight.numpy()
    np.testing.assert_allclose(dense, expected)
    keys = edge_index[0] * 7 + edge_index[1]
    assert bool((keys[1:] > keys[:-1]).all()), "sorted, and each edge once"


@settings(max_examples=100, deadline=None)
@given(ARCS)
def test_cleaning_twice_changes_nothing_and_counts_nothing(
    arcs: list[tuple[int, int, float]],
) -> None:
    source, target, weight = (
        np.array(column) for column in zip(*(arcs or [(0, 1, 1.0)]), strict=True)
    )
    edge_index, edge_weight = clean_edges(source, target, weight, 7, GraphFacts())
    facts = GraphFacts()
    again, weight_again = clean_edges(
        *edge_index.numpy(), None if edge_weight is None else edge_weight.numpy(), 7, facts
    )
    assert torch.equal(again, edge_index)
    assert (weight_again is None) == (edge_weight is None)
    assert edge_weight is None or torch.equal(weight_again, edge_weight)
    assert facts == GraphFacts()


def test_every_change_is_counted() -> None:
    source, target = np.array([0, 0, 0, 1, 2, 2]), np.array([1, 1, 0, 0, 3, 1])
    facts = GraphFacts()
    _, weight = clean_edges(source, target, None, 4, facts)
    assert weight is None
    assert facts == GraphFacts(self_loops=1, repeated_edges=1, arcs=4, one_way_arcs=2)


def test_different_weights_of_the_two_directions_give_their_mean() -> None:
    facts = GraphFacts()
    weights = np.array([1.0, 4.0])
    _, weight = clean_edges(np.array([0, 1]), np.array([1, 0]), weights, 2, facts)
    assert weight is not None
    assert weight.tolist() == [2.5, 2.5]
    assert facts == GraphFacts(unequal_weights=1)
