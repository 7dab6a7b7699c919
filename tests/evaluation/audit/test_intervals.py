"""Intervals and their combinations, against closed forms and published figures; slopes are least
squares on log2(1 + degree) over all nodes, those without neighbors too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.evaluation.audit.findings import Estimate
from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.intervals import (
    GroupMeans,
    difference,
    log_scale,
    paired_mean,
    ratio,
    slopes,
    wilson,
)
from rawlsgcn.evaluation.audit.resampling import resampled
from rawlsgcn.reporting.page import render


def test_wilson_is_that_of_scipy() -> None:
    from scipy.stats import binomtest

    low, high = wilson(np.array([7.0, 0.0, 12.0]), np.array([10.0, 12.0, 12.0]))
    for right, nodes, a, b in zip((7, 0, 12), (10, 12, 12), low, high, strict=True):
        theirs = binomtest(right, nodes).proportion_ci(method="wilson")
        assert (a, b) == pytest.approx((theirs.low, theirs.high))


def test_the_difference_of_shares_is_newcombes() -> None:
    """Newcombe (1998), method 10: 56/70 against 48/80 gives 0.0524 to 0.3339."""
    ends = wilson(np.array([56.0, 48.0]), np.array([70.0, 80.0]))
    a, b = (Estimate(p, ends[0][i], ends[1][i]) for i, p in enumerate((56 / 70, 48 / 80)))
    found = difference(a, b)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


estimates = st.builds(
    lambda middle, below, above: Estimate(middle, middle * (1 - below), middle * (1 + above)),
    st.floats(0.01, 10),
    st.floats(0.01, 0.9),
    st.floats(0.01, 2),
)


@given(estimates, estimates)
def test_a_ratio_lies_in_its_interval_and_inverts(a: Estimate, b: Estimate) -> None:
    found, inverse = ratio(a, b), ratio(b, a)
    if not math.isnan(found.low):
        assert found.low <= found.value * (1 + 1e-9)
    if not math.isnan(found.high):
        assert found.high >= found.value * (1 - 1e-9)
    assert found.value * inverse.value == pytest.approx(1)


@given(estimates, estimates)
def test_a_difference_is_antisymmetric(a: Estimate, b: Estimate) -> None:
    one, other = difference(a, b), difference(b, a)
    assert (one.value, one.low, one.high) == pytest.approx((-other.value, -other.high, -other.low))


def test_a_few_nodes_have_no_interval() -> None:
    assert math.isnan(paired_mean(np.arange(9.0)).low)
    assert not math.isnan(paired_mean(np.arange(10.0)).low)


def fit(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of a dense least-squares fit with an intercept."""
    design = np.stack([np.ones_like(x), x], 1)
    return float(np.linalg.lstsq(design, y, rcond=None)[0][1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(-50, 50), st.booleans()), min_size=2),
)
def test_slopes_are_those_of_a_dense_fit(nodes: list[tuple[int, int, bool]]) -> None:
    degree, tenths, right = (np.array(each, dtype=float) for each in zip(*nodes, strict=True))
    loss = tenths / 10
    grouped = GroupedScores.of(degree, loss, right)
    found = slopes(grouped, resampled(grouped, 100, 0))
    if len(np.unique(degree)) < 2:
        assert found is None
        return
    assert found is not None
    x = np.log2(1 + degree)
    assert found.loss.value == pytest.approx(fit(x, loss), rel=1e-7, abs=1e-9)
    assert found.accuracy.value == pytest.approx(100 * fit(x, right), rel=1e-7, abs=1e-7)


def test_an_audit_counts_nodes_without_neighbours() -> None:
    """Leaves, hubs, and isolated nodes that are always wrong: without these there is no trend."""
    hubs, leaves = torch.arange(20), torch.arange(20, 120)
    edges = torch.stack([leaves, hubs[leaves % 20]])
    y = torch.arange(160) % 2
    graph = Data(edge_index=edges, y=y, num_nodes=160)
    predicted = torch.where(torch.arange(160) < 120, y, 1 - y)
    audit = rg.audit(graph, predicted, resamples=100)
    slope = audit.models[0].slope
    assert slope is not None
    degree = np.bincount(edges.numpy().ravel(), minlength=160)
    expected = fit(np.log2(1.0 + degree), (predicted != y).numpy().astype(float))
    assert slope.loss.value == pytest.approx(expected)
    assert expected < -0.1
    assert "with each doubling of 1 + degree" in str(audit)
    assert "slope on log₂(1 + degree) over all evaluated nodes" in render(audit)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0, 1, 5], "one more"),
        ([0.25, 0.5], "plain"),
        ([0.0, 0.5], None),
        ([-1, 2], None),
        ([3, 3], None),
        ([float("nan"), float("nan")], None),
    ],
)
def test_the_logarithm_is_one_that_no_node_falls_out_of(values: Any, scale: str | None) -> None:
    assert log_scale(np.array(values, dtype=float)) == scale


def test_a_column_without_a_logarithm_has_no_slope_rather_than_fewer_nodes() -> None:
    ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    graph = Data(edge_index=ring, y=torch.arange(60) % 3, num_nodes=60)
    balance = ("balance", np.arange(60) - 30)
    assert rg.audit(graph, torch.zeros(60), by=balance, resamples=100).models[0].slope is None


def test_no_loss_is_negative() -> None:
    """The studentized interval of a few skewed losses would end below zero."""
    loss = np.array([1e-3] * 9 + [2e-3] * 10 + [12.0])
    grouped = GroupedScores.of(np.ones(20, np.int64), loss, np.ones(20))
    means = GroupMeans(grouped.sums(), resampled(grouped, 500, 0))
    assert means.loss(0).low >= 0
