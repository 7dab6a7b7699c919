"""The verdict on a cell follows the rule, at its borders too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.paper import printed, verdict

numbers = st.floats(0.001, 100)


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        ((80.9, 0.0), (80.0, 0.0), "reproduced"),  # within a point
        ((81.1, 0.0), (80.0, 0.0), "better"),
        ((78.9, 0.0), (80.0, 0.0), "differs"),
        ((75.0, 2.0), (80.0, 2.0), "reproduced"),  # 5 <= 2 * sqrt(8)
        ((74.0, 2.0), (80.0, 2.0), "differs"),  # 6 > 5.66
        ((86.0, 2.0), (80.0, 2.0), "better"),
        ((60.0, 1.0), None, "new"),
        ((None, None), (80.0, 1.0), "differs"),
    ],
)
def test_accuracy(ours: tuple[float, float], paper: tuple[float, float], expected: str) -> None:
    assert verdict.accuracy(ours, paper) == expected


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        ((0.114, 0.0), (0.1, 0.0), "reproduced"),  # within 15 %
        ((0.116, 0.0), (0.1, 0.0), "differs"),
        ((0.084, 0.0), (0.1, 0.0), "better"),
        ((0.2, 0.04), (0.1, 0.04), "reproduced"),
    ],
)
def test_bias(ours: tuple[float, float], paper: tuple[float, float], expected: str) -> None:
    assert verdict.bias(ours, paper) == expected


@given(numbers, numbers, numbers, numbers)
def test_better_and_differs_are_opposite_for_accuracy_and_bias(
    mean: float, deviation: float, printed_mean: float, printed_deviation: float
) -> None:
    """Where neither rule says reproduced, what is better for one differs for the other."""
    found = {
        rule((mean, deviation), (printed_mean, printed_deviation))
        for rule in (verdict.accuracy, verdict.bias)
    }
    assert found in ({"reproduced"}, {"better", "differs"}) or "reproduced" in found


@given(numbers, numbers)
def test_the_printed_number_reproduces_itself(mean: float, deviation: float) -> None:
    assert verdict.accuracy((mean, deviation), (mean, deviation)) == "reproduced"
    assert verdict.bias((mean, deviation), (mean, deviation)) == "reproduced"


def test_printed_numbers_are_the_papers() -> None:
    tables = printed.printed()
    assert len(tables["effectiveness"]) == 7
    assert all(len(methods) == 8 for methods in tables["effectiveness"].values())
    assert printed.figures("amazon-photo", "rawlsgcn-graph")["bias"] == [0.071, 0.006]
    assert printed.figures("amazon-photo", "rawlsgcn-grad", "row")["accuracy"] == [82.86, 1.139]
    assert printed.figures("coauthor-physics", "tail-gnn")["bias"] is None
    row = printed.efficiency("gcn", "100 epochs")
    assert row is not None
    assert row["parameters"] == 48264
