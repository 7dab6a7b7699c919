"""The worst group and the worst nodes against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rawlsgcn.evaluation.audit.findings import Estimate, GroupAudit
from rawlsgcn.evaluation.audit.intervals import difference, normal_quantile
from rawlsgcn.evaluation.audit.worst_off import worst_and_best, worst_nodes


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


@pytest.mark.parametrize("seed", range(20))
def test_worst_and_best_are_those_of_all_pairs(seed: int) -> None:
    """Against every ordered pair, one by one."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    value = rng.choice([0, 100], size) if seed % 4 == 0 else rng.uniform(0, 100, size)
    each = [
        Estimate(float(v), max(0.0, float(v - a)), min(100.0, float(v + b)))
        for v, a, b in zip(value, *rng.uniform(0, 20, (2, size)), strict=True)
    ]
    blank = GroupAudit("", 0, 0, 50, 1, 1, False, *[Estimate(0)] * 4, None)
    groups = [replace(blank, label=str(i), accuracy=e) for i, e in enumerate(each)]
    groups.insert(1, replace(blank, label="small", too_small=True, accuracy=Estimate(-5)))
    groups.append(replace(blank, label="rest", pooled=True, accuracy=Estimate(500, 499, 501)))
    found = worst_and_best(groups)
    assert found is not None
    by = normal_quantile(1 - 0.05 / (size * (size - 1) / 2)) / normal_quantile(0.95)
    wide = [
        Estimate(
            e.value,
            max(0.0, e.value - by * (e.value - e.low)),
            min(100.0, e.value + by * (e.high - e.value)),
        )
        for e in each
    ]
    ends = [difference(a, b) for i, a in enumerate(wide) for j, b in enumerate(wide) if i != j]
    assert found.difference.low == pytest.approx(max(each.low for each in ends))
    assert found.difference.high == pytest.approx(max(each.high for each in ends))
    order = sorted(range(size), key=lambda i: each[i].value)
    least, most = each[order[0]].value, each[order[-1]].value
    assert found.difference.value == pytest.approx(most - least)
    assert found.ratio == pytest.approx(least / most if most else np.nan, nan_ok=True)
    assert [found.worst, found.best] == [str(order[0]), str(order[-1])]
