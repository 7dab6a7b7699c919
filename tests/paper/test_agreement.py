"""The verdict on a figure follows the rule, at its borders too."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rawlsgcn.paper.agreement import figure_verdict, published, published_figures

accuracy_verdict, bias_verdict = (partial(figure_verdict, name) for name in ("accuracy", "bias"))
numbers = st.floats(0.001, 100)
rules = st.sampled_from([accuracy_verdict, bias_verdict])
counts = st.integers(1, 20)
Rule = Callable[..., str]
SHOWN = ("better", "differs")


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        ((80.9, 0.0), (80.0, 0.0), "reproduced"),  # within a point
        ((81.1, 0.0), (80.0, 0.0), "better"),
        ((78.9, 0.0), (80.0, 0.0), "differs"),
        ((75.0, 2.0), (80.0, 2.0), "inconclusive"),  # 5 <= 2 * sqrt(8), yet five points off
        ((74.0, 2.0), (80.0, 2.0), "differs"),  # 6 > 5.66
        ((86.0, 2.0), (80.0, 2.0), "better"),
        ((80.0, 1.4), (80.0, 1.4), "reproduced"),  # sqrt(2 * 1.96) = 1.98 <= 2
        ((80.0, 1.5), (80.0, 1.5), "inconclusive"),  # 2.12 > 2
        ((79.0, 0.7), (80.0, 0.7), "reproduced"),  # 1 + 0.99 <= 2
        ((60.0, 1.0), None, "new"),
        ((None, None), (80.0, 1.0), "diverged"),
        ((math.nan, math.nan), (80.0, 1.0), "diverged"),
    ],
)
def test_accuracy(ours: tuple[float, float], paper: tuple[float, float], expected: str) -> None:
    assert accuracy_verdict(ours, paper) == expected


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        ((0.114, 0.0), (0.1, 0.0), "reproduced"),  # within 15 %
        ((0.116, 0.0), (0.1, 0.0), "differs"),
        ((0.084, 0.0), (0.1, 0.0), "better"),
        ((0.2, 0.04), (0.1, 0.06), "inconclusive"),  # a factor of two, and the spread allows more
        ((0.2, 0.04), (0.15, 0.02), "reproduced"),  # 0.05 + 0.045 <= 0.15
        ((2190.564, 4267.211), (3.146, 2.425), "inconclusive"),
        ((36.5, 24.6), (10.01, 2.48), "inconclusive"),
        ((0.843, 0.368), (0.138, 0.062), "inconclusive"),
        ((13.6, 13.0), (12.3, 6.8), "inconclusive"),  # near, but anything would have been
        ((math.inf, math.nan), (0.1, 0.01), "diverged"),
    ],
)
def test_bias(ours: tuple[float, float], paper: tuple[float, float], expected: str) -> None:
    assert bias_verdict(ours, paper) == expected


@given(numbers, numbers, numbers, numbers)
def test_better_and_differs_are_opposite_for_accuracy_and_bias(
    mean: float, deviation: float, printed_mean: float, printed_deviation: float
) -> None:
    """Where both rules show a difference, what is better for one differs for the other."""
    found = {
        rule((mean, deviation), (printed_mean, printed_deviation))
        for rule in (accuracy_verdict, bias_verdict)
    }
    assert found & {"reproduced", "inconclusive"} or found == {"better", "differs"}


@given(numbers, numbers)
def test_the_printed_number_reproduces_itself_unless_its_spread_is_too_wide(
    mean: float, deviation: float
) -> None:
    """With five runs each, 2e is sqrt(2) times the common deviation."""
    both = (mean, deviation), (mean, deviation)
    for rule, relevant in ((accuracy_verdict, 2.0), (bias_verdict, mean)):
        spread = math.sqrt(2) * deviation
        assume(not math.isclose(spread, relevant, rel_tol=1e-9))
        assert rule(*both) == ("reproduced" if spread < relevant else "inconclusive")


@given(rules, numbers, numbers, numbers, numbers, counts)
def test_what_is_reproduced_is_within_two_points_or_a_factor_of_two(
    rule: Rule, mean: float, deviation: float, theirs: float, their_deviation: float, runs: int
) -> None:
    if rule((mean, deviation), (theirs, their_deviation), runs) != "reproduced":
        return
    if rule is accuracy_verdict:
        assert abs(mean - theirs) <= 2.0
    else:
        assert theirs / 2 * (1 - 1e-12) <= mean <= theirs * 2 * (1 + 1e-12)


@given(rules, numbers, numbers, numbers, numbers, counts, numbers, st.booleans())
def test_a_wider_spread_shows_no_more(
    rule: Rule,
    mean: float,
    deviation: float,
    theirs: float,
    their_deviation: float,
    runs: int,
    wider: float,
    ours: bool,
) -> None:
    """It never makes inconclusive reproduced, nor anything better or different."""
    before = rule((mean, deviation), (theirs, their_deviation), runs)
    if ours:
        after = rule((mean, deviation + wider), (theirs, their_deviation), runs)
    else:
        after = rule((mean, deviation), (theirs, their_deviation + wider), runs)
    assert before != "inconclusive" or after == "inconclusive"
    assert after not in SHOWN or after == before


@given(rules, numbers, numbers, numbers, numbers, counts)
def test_some_spread_is_too_wide_for_any_figure(
    rule: Rule, mean: float, deviation: float, theirs: float, their_deviation: float, runs: int
) -> None:
    wide = 10 * (mean + theirs + 2)
    assert rule((mean, wide), (theirs, their_deviation), runs) == "inconclusive"
    assert rule((mean, deviation), (theirs, wide), runs) == "inconclusive"


@given(rules, numbers, numbers, numbers, numbers)
def test_ours_and_theirs_may_change_places(
    rule: Rule, mean: float, deviation: float, theirs: float, their_deviation: float
) -> None:
    """Agreement is shown both ways or neither; only the 15 % are of the printed bias."""
    one = rule((mean, deviation), (theirs, their_deviation))
    other = rule((theirs, their_deviation), (mean, deviation))
    if rule is bias_verdict:
        away, noise = abs(mean - theirs), 2 * math.hypot(deviation, their_deviation)
        assume(away <= noise or away > 0.15 * max(mean, theirs))
    assert (one in SHOWN) == (other in SHOWN)
    if one in SHOWN:
        assert one != other
    else:
        assert one == other


@given(rules, numbers, numbers, numbers, numbers)
def test_more_runs_only_help_and_one_run_shows_no_agreement(
    rule: Rule, mean: float, deviation: float, theirs: float, their_deviation: float
) -> None:
    found = [rule((mean, deviation), (theirs, their_deviation), runs) for runs in (1, 2, 5, 50)]
    assert found[0] != "reproduced"
    order = ["inconclusive", "reproduced"]
    if found[0] in SHOWN:
        assert len(set(found)) == 1
    else:
        assert found == sorted(found, key=order.index)


def test_published_numbers_are_the_papers() -> None:
    tables = published()
    assert len(tables["effectiveness"]) == 7
    assert all(len(methods) == 8 for methods in tables["effectiveness"].values())
    assert published_figures("amazon-photo", "rawlsgcn-graph")["bias"] == [0.071, 0.006]
    assert published_figures("amazon-photo", "rawlsgcn-grad", "row")["accuracy"] == [82.86, 1.139]
    assert published_figures("coauthor-physics", "tail-gnn")["bias"] is None
    assert tables["efficiency"]["gcn"]["100 epochs"]["parameters"] == 48264
