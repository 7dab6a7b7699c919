"""Draws kept as sums are unbiased and the same on any number of threads; permutation tests agree
with all permutations."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import torch

from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.resampling import (
    p_values,
    poisson,
    resampled,
    shuffled_bias,
    swapped_bias,
)


def grouped(nodes: int = 4000) -> GroupedScores:
    """Groups of one node to more than five hundred, so that every way of summing is taken."""
    rng = np.random.default_rng(0)
    degree = np.minimum(rng.zipf(1.6, nodes), 300)
    return GroupedScores.of(degree, 100 + rng.exponential(size=nodes), rng.random(nodes) < 0.7)


def test_weights_are_poisson() -> None:
    weights = poisson(np.random.default_rng(0), (1000, 1000))
    counts = np.bincount(weights.astype(int).ravel())[:4] / 1e6
    np.testing.assert_allclose(counts, np.exp(-1) / np.array([1, 1, 2, 6]), atol=0.002)
    assert weights.mean() == pytest.approx(1, abs=0.004)


def test_sums_are_those_of_the_nodes() -> None:
    data = grouped()
    assert (data.count == 1).any()
    assert (data.count >= 512).any()
    drawn = resampled(data, 2000, seed=0)
    error = 5 / np.sqrt(2000)
    for sums, values in (
        (drawn.count, np.ones_like(data.loss)),
        (drawn.total, data.loss),
        (drawn.square, data.loss**2),
        (drawn.right, data.right),
    ):
        expected, spread = data.sum(values), np.sqrt(data.sum(values**2))
        assert (np.abs(sums.mean(0) - expected) <= error * spread).all()
        seen = spread > 0
        np.testing.assert_allclose(sums.std(0)[seen], spread[seen], rtol=0.12)


def test_wider_groups_are_sums_of_narrower_ones() -> None:
    data = grouped(500)
    drawn = resampled(data, 100, seed=1)
    whole = drawn.joined(np.zeros(len(data.count), np.int64))
    np.testing.assert_allclose(whole.total[:, 0], drawn.total.sum(1))
    odd = drawn.joined(np.arange(len(data.count)) % 2)
    np.testing.assert_allclose(odd.total[:, 1], drawn.total[:, 1::2].sum(1))
    np.testing.assert_allclose(odd.others().total[:, 0], odd.total[:, 1])


def test_threads_do_not_change_the_draws() -> None:
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(resampled(grouped(40_000), 500, seed=3).total)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


DEGREE = np.array([1, 1, 2, 2, 2, 3])
LOSS = np.array([2.0, 1.7, 0.9, 1.1, 0.3, 0.2])


def by_degree(loss: np.ndarray) -> GroupedScores:
    return GroupedScores.of(DEGREE, loss, np.ones(len(loss)))


def test_shuffling_is_near_all_permutations() -> None:
    biases = np.array([by_degree(LOSS[list(order)]).bias for order in permutations(range(6))])
    test = shuffled_bias(by_degree(LOSS), 20_000, seed=0)
    assert test.seen == pytest.approx(by_degree(LOSS).bias)
    assert test.mean == pytest.approx(biases.mean(), rel=0.02)
    assert test.p == pytest.approx((biases >= test.seen - 1e-12).mean(), abs=0.01)
    assert sum(test.counts) == test.draws
    assert test.edges[0] <= test.low <= test.high <= test.edges[-1]


def test_swapping_is_near_all_ways_to_swap() -> None:
    other = LOSS[::-1] * 0.5
    seen = np.log(by_degree(LOSS).bias / by_degree(other).bias)
    ways = []
    for at in product((False, True), repeat=6):
        first, second = np.where(at, other, LOSS), np.where(at, LOSS, other)
        ways.append(np.log(by_degree(first).bias / by_degree(second).bias))
    test = swapped_bias(by_degree(LOSS), by_degree(other), 20_000, seed=0)
    assert test.ratio == pytest.approx(np.exp(seen))
    assert test.p_lower == pytest.approx((np.array(ways) <= seen + 1e-9).mean(), abs=0.015)
    assert test.p_higher == pytest.approx((np.array(ways) >= seen - 1e-9).mean(), abs=0.015)


def test_p_values_count_the_data_once() -> None:
    """As one more draw of a sample; of all permutations it is one already."""
    assert p_values(2.0, [1.0, 2.0 + 1e-12, 3.0]) == (3 / 4, 3 / 4)
    assert p_values(2.0, [1.0, 2.0, 3.0], exhaustive=True) == (2 / 3, 2 / 3)
    assert p_values(2.0, [1.5, 3.0], tolerance=0.5) == (2 / 3, 1.0)


def test_one_model_is_not_fairer_than_itself() -> None:
    test = swapped_bias(by_degree(LOSS), by_degree(LOSS), 100, seed=0)
    assert test.p_lower == test.p_higher == 1


def test_a_single_degree_has_nothing_to_test() -> None:
    alone = GroupedScores.of(np.ones(5), np.arange(5.0), np.ones(5))
    assert shuffled_bias(alone, 100, seed=0).draws == 0
    assert swapped_bias(alone, alone, 100, seed=0).draws == 0


@pytest.mark.parametrize("seed", range(5))
def test_shuffling_that_changes_nothing_has_nothing_to_say(seed: int) -> None:
    """Nodes with a degree of their own, or equal losses: the biases differ by rounding only."""
    loss = np.random.default_rng(seed).exponential(size=50)
    for own in (
        GroupedScores.of(np.arange(50), loss, np.ones(50)),
        GroupedScores.of(np.arange(50) % 7, np.full(50, loss[0]), np.ones(50)),
    ):
        test = shuffled_bias(own, 200, seed)
        assert test.seen == own.bias
        assert test.draws == 0
        assert np.isnan(test.p)
        assert not test.counts
