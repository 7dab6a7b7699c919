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
