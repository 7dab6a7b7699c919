"""Gini, Lorenz and the worst nodes against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.evaluation.audit.inequality import inequality, worst_nodes


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=8))
def test_gini_is_the_mean_difference_of_two_nodes(groups: list[tuple[int, float]]) -> None:
    nodes = np.array([count for count, _ in groups])
    right = np.array([round(count * share) for count, share in groups])
    found = inequality(right, nodes, 100, seed=0)
    of_node = np.repeat(right / nodes, nodes)
    apart = np.abs(of_node[:, None] - of_node[None]).mean()
    expected = apart / (2 * of_node.mean()) if of_node.any() else 0.0
    assert found.gini.value == pytest.approx(expected, abs=1e-9)
    assert found.population[0] == found.accuracy[0] == 0
    assert found.population[-1] == pytest.approx(1)
    assert found.accuracy[-1] == pytest.approx(1)
    assert (np.diff(found.population) >= 0).all()
    assert (np.array(found.accuracy) <= np.array(found.population) + 1e-9).all()


def test_worst_nodes_are_the_mean_of_the_largest_losses() -> None:
    rng = np.random.default_rng(0)
    loss = rng.exponential(size=2000)
    low = loss > np.quantile(loss, 0.95)  # as if few neighbours meant a large loss
    found = {each.percent: each for each in worst_nodes(loss, low, 500, seed=0)}
    for percent in (1, 5, 10):
        size = 20 * percent
        mean = np.sort(loss)[-size:].mean()
        assert found[percent].loss.value == pytest.approx(mean)
        assert found[percent].loss.low < mean < found[percent].loss.high
        assert found[percent].share_of_loss == pytest.approx(100 * mean * size / loss.sum())
    assert found[5].low_share == 100
    assert found[10].low_share == 50


def test_of_a_few_nodes_there_is_no_worst_per_cent() -> None:
    assert [each.percent for each in worst_nodes(np.arange(12.0), np.zeros(12, bool), 100, 0)] == [
        10
    ]


def test_of_equal_losses_no_node_comes_first() -> None:
    """A hundred wrong answers, 30 of few neighbours: any 5 % hold 30 % of those, in any order."""
    loss = (np.arange(1000) < 100).astype(float)
    low = np.arange(1000) < 30
    rng = np.random.default_rng(0)
    for order in (np.arange(1000), np.arange(1000)[::-1], rng.permutation(1000)):
        found = worst_nodes(loss[order], low[order], 100, 0)
        assert [each.low_share for each in found] == pytest.approx([30, 30, 30])
    partly = {each.percent: each for each in worst_nodes(loss - loss * low / 2, low, 100, 0)}
    assert partly[5].low_share == 0
    assert partly[10].low_share == pytest.approx(30)


def test_without_low_degrees_their_share_is_not_known() -> None:
    for each in worst_nodes(np.arange(200.0), None, 100, 0):
        assert np.isnan(each.low_share)
        assert np.isnan(each.low_share_of_all)
