"""Draws without replacement: right sets, each equally likely, each a function of its key."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.sampling.random_draws import derive_key, draw_offsets


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
