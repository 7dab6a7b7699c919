"""The verdict on a cell: what we got beside what the paper prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

REPRODUCED, BETTER, DIFFERS, NEW = "reproduced", "better", "differs", "new"
"""``new``: the paper prints no number there (out of memory, or not one of its cells)."""

ACCURACY_POINTS = 1.0
BIAS_SHARE = 0.15
DEVIATIONS = 2.0


def accuracy(ours: tuple[float | None, float | None], paper: Sequence[float] | None) -> str:
    """Reproduced within two combined standard deviations or one point; better above that."""
    return _verdict(ours, paper, lambda printed: ACCURACY_POINTS, higher_is_better=True)


def bias(ours: tuple[float | None, float | None], paper: Sequence[float] | None) -> str:
    """Reproduced within two combined standard deviations or 15 %; better below that."""
    return _verdict(ours, paper, lambda printed: BIAS_SHARE * printed, higher_is_better=False)


def _verdict(
    ours: tuple[float | None, float | None],
    paper: Sequence[float] | None,
    margin: Callable[[float], float],
    higher_is_better: bool,
) -> str:
    if paper is None:
        return NEW
    mean, deviation = ours
    if mean is None or deviation is None:
        return DIFFERS  # a run that gave no number reproduces nothing
    printed, printed_deviation = paper
    away = mean - printed
    if abs(away) <= max(DEVIATIONS * math.hypot(deviation, printed_deviation), margin(printed)):
        return REPRODUCED
    return BETTER if (away > 0) == higher_is_better else DIFFERS


def exactly(ours: float | None, paper: float | None) -> str:
    """For counts: of parameters, nodes, edges."""
    if paper is None:
        return NEW
    return REPRODUCED if ours == paper else DIFFERS


def cost(ours: float, paper: float | None) -> str:
    """For seconds and memory, which depend on the machine: within 15 %, or less, or more."""
    if paper is None:
        return NEW
    if abs(ours - paper) <= BIAS_SHARE * paper:
        return REPRODUCED
    return BETTER if ours < paper else DIFFERS


def judged(chosen: Mapping[str, Any], paper: Mapping[str, Any]) -> dict[str, str]:
    """The verdicts on accuracy and bias."""
    return {
        name: rule((chosen[name]["mean"], chosen[name]["std"]), paper.get(name))
        for name, rule in (("accuracy", accuracy), ("bias", bias))
    }
