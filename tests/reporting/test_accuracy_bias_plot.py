"""The plane shows every method where its figures are, and the front is what nothing beats."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.reporting.accuracy_bias_plot import accuracy_bias_plot, pareto_front

POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=12)


def test_front() -> None:
    points = [(0.3, 80.0), (0.1, 70.0), (0.2, 75.0), (0.25, 74.0), (0.1, 60.0)]
    assert pareto_front(points) == [(0.1, 70.0), (0.2, 75.0), (0.3, 80.0)]


@given(POINTS)
def test_the_front_is_what_no_other_point_beats(points) -> None:
    def beaten(point):
        return any(
            other != point and other[0] <= point[0] and other[1] >= point[1] for other in points
        )

    assert set(pareto_front(points)) == {point for point in points if not beaten(point)}


def test_dots_stand_at_the_results_figures(three) -> None:
    plain, calibrated = accuracy_bias_plot(three).axes
    for axes, name in ((plain, "bias"), (calibrated, "calibrated_bias")):
        dots = [bars.lines[0].get_xydata()[0] for bars in axes.containers]
        for dot, result in zip(dots, three, strict=True):
            assert tuple(dot) == pytest.approx((getattr(result, name).mean, result.accuracy.mean))


def test_a_bias_that_is_not_defined_is_left_out(three, make) -> None:
    lost = make("rawlsgcn-grad", "Lost", graph=three[0].graph)
    lost.run_metrics = [
        replace(each, bias=math.nan, calibrated_bias=math.nan) for each in lost.run_metrics
    ]
    assert all(len(axes.containers) == 1 for axes in accuracy_bias_plot([three[0], lost]).axes)
    assert all(not axes.containers for axes in accuracy_bias_plot(lost).axes)
