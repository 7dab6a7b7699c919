"""The time that ``auto`` is said to take."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rawlsgcn.experiments.model_search import time_estimate
from rawlsgcn.experiments.model_search.time_estimate import TimeEstimate


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"seconds": 100.0}
    monkeypatch.setattr(time_estimate.time, "perf_counter", lambda: now["seconds"])
    return now


def estimate(deadline: float = math.inf) -> tuple[TimeEstimate, list[tuple[Any, ...]]]:
    said: list[tuple[Any, ...]] = []
    costs = [("gcn", 10), ("mlp", 10), ("mlp", 20), ("gcn", 40)]
    return TimeEstimate(lambda *each: said.append(each), costs, deadline), said


def test_it_is_unknown_until_something_is_measured(clock: dict[str, float]) -> None:
    made, said = estimate()
    with made.step("first", "gcn") as within:
        clock["seconds"] += 5
        within(1, 100)
        assert said == [(0, 0, "first"), (0, 0, "first")]
        within(50, 100)  # half of a step in 5 s: one unit of work takes a second
        assert said[-1] == (5, 80, "first")


def test_steps_of_a_kind_take_as_long_as_those_before(clock: dict[str, float]) -> None:
    made, said = estimate()
    with made.step("first", "gcn"):
        clock["seconds"] += 10
    assert said[-1] == (10, 80, "first")
    with made.step("second", "mlp"):
        clock["seconds"] += 20
    with made.step("third", "mlp"):
        assert said[-1] == (30, 30 + 40 + 40, "third")
        clock["seconds"] += 50
    with made.step("last", "gcn") as within:
        clock["seconds"] += 30
        within(3, 4)
        assert said[-1] == (110, 120, "last")
    assert said[-1] == (110, 110, "last")


def test_the_deadline_ends_it(clock: dict[str, float]) -> None:
    made, said = estimate(deadline=125)
    with made.step("first", "gcn") as within:
        clock["seconds"] += 5
        within(50, 100)
        assert said[-1] == (5, 25, "first")
        clock["seconds"] += 25
    made.skip("mlp")
    made.skip("mlp")
    with made.step("last", "gcn"):  # nothing ends a step that has begun
        assert said[-1] == (30, 30 + 120, "last")
