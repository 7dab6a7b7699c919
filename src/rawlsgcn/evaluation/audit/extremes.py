"""The worst and the best group, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .intervals import Interval, difference_ends, normal_quantile, ratio_ends
from .parts import Estimate, Extremes, Group

Floats = npt.NDArray[np.float64]


def extremes(
    groups: Sequence[Group], figure: str, level: float = 0.95, highest: float = math.inf
) -> Extremes | None:
    """Worst and best by ``figure`` ("accuracy" or "loss") of the groups that can be named: those
    large enough, without the one that pools what is rare.

    The largest of several means looks larger than it is. So the intervals are those of the largest
    difference (and the smallest ratio) over all pairs of groups, each pair's interval widened until
    all hold at once (Bonferroni). No figure is under 0 or over the ``highest`` that it can be.
    """
    named = [group for group in groups if not group.too_small and not group.pooled]
    if len(named) < 2:
        return None
    pairs = len(named) * (len(named) - 1) / 2
    by = normal_quantile(1 - (1 - level) / pairs) / normal_quantile(level)
    found: list[Estimate] = [getattr(group, figure) for group in named]
    value, low, high = np.array([[each.value, each.low, each.high] for each in found]).T
    low = np.maximum(value - by * (value - low), 0.0)
    high = np.minimum(value + by * (high - value), highest)
    order = np.argsort(value, kind="stable")
    least, most = int(order[0]), int(order[-1])
    worst, best = (least, most) if figure == "accuracy" else (most, least)
    smallest, largest = float(value[least]), float(value[most])
    return Extremes(
        named[worst].label,
        named[best].label,
        Estimate(
            largest - smallest, *_over_pairs(difference_ends, np.fmax.reduce, (value, low, high))
        ),
        Estimate(
            smallest / largest if largest > 0 else math.nan,
            *_over_pairs(ratio_ends, np.fmin.reduce, (value, low, high)),
        ),
    )


def _over_pairs(
    ends: Callable[[Interval, Interval], tuple[Floats, Floats]],
    pick: Callable[[Floats], float],
    each: Interval,
) -> tuple[float, float]:
    """The extreme ends over all ordered pairs, one group against all others at a time.

    Ends that are not known do not count, unless none is.
    """
    lows, highs = [], []
    for place in range(len(each[0])):
        value, low, high = (part[place] for part in each)
        others = tuple(np.delete(part, place) for part in each)
        found = ends((value, low, high), (others[0], others[1], others[2]))
        lows.append(pick(found[0]))
        highs.append(pick(found[1]))
    return float(pick(np.array(lows))), float(pick(np.array(highs)))
