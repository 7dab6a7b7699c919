"""Permutation tests agree with all permutations, and say nothing where nothing can be tested."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.permutation_tests import p_values, shuffled_bias, swapped_bias

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
