"""Intervals and their combinations, against closed forms and published figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.evaluation.audit.findings import Estimate
from rawlsgcn.evaluation.audit.intervals import difference, paired_mean, ratio, wilson


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
