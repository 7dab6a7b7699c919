"""The columns of tables of results and of the leaderboard, and which figures are the best.

No heavy import: the command line's light commands use this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .._core.text import printable
from .formatting import number, percent, short_count, spread

if TYPE_CHECKING:
    from ..experiments.result import Result

#: The figures by which results are compared: heading, property, how it is shown, and the best.
COMPARED: tuple[tuple[str, str, Callable[[float], str], Callable[[list[float]], float]], ...] = (
    ("accuracy (%)", "accuracy", percent, max),
    ("of low degrees", "low_degree_accuracy", percent, max),
    ("of high degrees", "high_degree_accuracy", percent, max),
    ("bias", "bias", number, min),
    ("calibrated bias", "calibrated_bias", number, min),
)


def best_figures(results: Sequence[Result]) -> list[tuple[bool, ...]]:
    """Which figures of each result, in the order of ``COMPARED``, are shown as the best.

    A method that has not learned is not compared. Values that look the same are equally good; where
    all do, none is the best.
    """
    columns = []
    for _, metric, show, choose in COMPARED:
        means = [math.nan if each.failure else getattr(each, metric).mean for each in results]
        finite = [mean for mean in means if mean == mean]
        differ = len({show(mean) for mean in finite}) > 1
        best = show(choose(finite)) if differ else None
        columns.append([mean == mean and show(mean) == best for mean in means])
    return list(zip(*columns, strict=True))


def result_cells(result: Result) -> tuple[str, ...]:
    """Accuracy, that of low and of high degrees, bias and calibrated bias, as tables show them."""
    return (
        spread(result.accuracy, percent),
        percent(result.low_degree_accuracy.mean),
        percent(result.high_degree_accuracy.mean),
        spread(result.bias, number),
        number(result.calibrated_bias.mean),
    )


def trial_cells(trial: Result, grid: Iterable[str]) -> tuple[str, ...]:
    """The values of a trial of a tuning, validation and test accuracy, bias and calibrated bias."""
    return (
        *(printable(trial.settings[name]) for name in grid),
        percent(trial.validation_accuracy.mean),
        spread(trial.accuracy, percent),
        spread(trial.bias, number),
        number(trial.calibrated_bias.mean),
    )


#: Heading, column of the leaderboard, how it is shown, and whether it is omitted in few columns.
LEADERBOARD: tuple[tuple[str, str, Callable[[float], str], bool], ...] = (
    ("validation\nloss", "validation_loss", number, False),
    ("validation\naccuracy", "validation_accuracy", percent, True),
    ("accuracy\n(%)", "accuracy", percent, False),
    ("of low\ndegrees", "low_degree_accuracy", percent, False),
    ("calibrated\nbias", "calibrated_bias", number, False),
    ("para-\nmeters", "parameters", lambda count: short_count(int(count)), False),
    ("\nseconds", "seconds", lambda seconds: f"{seconds:,.1f}", True),
)
