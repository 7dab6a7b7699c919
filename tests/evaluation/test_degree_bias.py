"""Group means, variance, lines and quarters by degree against plain Python."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.evaluation.degree_bias import (
    DegreeGroups,
    degree_line,
    degree_quarters,
    node_scores,
    regression_line,
    variance,
)

nodes = st.lists(st.tuples(st.integers(0, 9), st.floats(-50, 50)), min_size=1, max_size=60)


@given(nodes)
@settings(max_examples=100, deadline=None)
def test_means_are_those_of_a_plain_loop(pairs: list[tuple[int, float]]) -> None:
    by_degree: dict[int, list[float]] = {}
    for degree, value in pairs:
        by_degree.setdefault(degree, []).append(value)
    groups = DegreeGroups.of(torch.tensor([degree for degree, _ in pairs]))
    means = groups.mean(torch.tensor([value for _, value in pairs], dtype=torch.float64))
    assert groups.degree.tolist() == sorted(by_degree)
    assert groups.count.tolist() == [len(by_degree[k]) for k in sorted(by_degree)]
    expected = [statistics.fmean(by_degree[k]) for k in sorted(by_degree)]
    assert means.tolist() == pytest.approx(expected, abs=1e-12)
    if len(expected) > 1:
        assert variance(means) == pytest.approx(statistics.variance(expected), abs=1e-10)
    else:
        assert math.isnan(variance(means))


def test_sums_are_kept_in_float64_for_float32_values() -> None:
    values = torch.full((300_000,), 0.1, dtype=torch.float32)
    groups = DegreeGroups.of(torch.zeros(300_000, dtype=torch.int64))
    assert groups.mean(values).item() == pytest.approx(float(np.float32(0.1)), rel=1e-12)


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=20), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_line_is_numpys(values: list[float], first: int) -> None:
    x = torch.arange(first, first + 3 * len(values), 3)
    slope, intercept = regression_line(x, torch.tensor(values))
    expected = np.polyfit(x.double().numpy(), np.array(values, dtype=np.float32).astype(float), 1)
    assert (slope, intercept) == pytest.approx(tuple(expected), abs=1e-6)


def test_line_goes_through_groups_of_more_than_five_only() -> None:
    groups = DegreeGroups.of(torch.tensor([1] * 6 + [2] * 5 + [3] * 7))
    slope, intercept = degree_line(groups, torch.tensor([1.0, 100.0, 5.0]))
    assert (slope, intercept) == pytest.approx((2.0, -1.0))
    alone = DegreeGroups.of(torch.tensor([1] * 6 + [2] * 5))
    assert all(math.isnan(part) for part in degree_line(alone, torch.tensor([1.0, 2.0])))


def test_a_node_with_nan_logits_is_neither_right_nor_wrong() -> None:
    logits = torch.tensor([[math.nan, 0.0], [2.0, 0.0]])
    loss, right = node_scores(logits, torch.tensor([0, 0]))
    assert right[0].isnan()
    assert right[1] == 1
    assert loss[0].isnan()
    assert loss[1].item() == pytest.approx(math.log1p(math.exp(-2)))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80))
def test_each_quarter_has_a_fourth_of_the_nodes_or_more(values: list[int]) -> None:
    degree = np.array(values)
    low, high = degree_quarters(degree)
    assert 4 * (degree <= low).sum() >= len(degree)
    assert 4 * (degree >= high).sum() >= len(degree)
    # Without the highest degree of the low quarter it would be smaller than a fourth.
    assert 4 * (degree < np.floor(low)).sum() <= len(degree) + 3
