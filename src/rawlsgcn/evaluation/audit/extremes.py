"""The worst and the best group, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .intervals import difference, normal_quantile, ratio
from .parts import Estimate, Extremes, Group


def extremes(
    groups: Sequence[Group], figure: str, level: float = 0.95, highest: float = math.inf
) -> Extremes | None:
    """Worst and best by ``figure`` ("accuracy" or "loss") of the groups that are large enough.

    The largest of several means looks larger than it is. So the intervals are those of the largest
    difference (and the smallest ratio) over all pairs of groups, each pair's interval widened until
    all hold at once (Bonferroni). No figure is under 0 or over the ``highest`` that it can be.
    """
    named = [(group.label, getattr(group, figure)) for group in groups if not group.too_small]
    if len(named) < 2:
        return None
    pairs = len(named) * (len(named) - 1) / 2
    by = normal_quantile(1 - (1 - level) / pairs) / normal_quantile(level)
    wide = [
        Estimate(
            each.value,
            max(0.0, each.value - by * (each.value - each.low)),
            min(highest, each.value + by * (each.high - each.value)),
        )
        for _, each in named
    ]
    order = sorted(range(len(named)), key=lambda i: named[i][1].value)
    least, most = order[0], order[-1]
    worst, best = (least, most) if figure == "accuracy" else (most, least)
    return Extremes(
        named[worst][0],
        named[best][0],
        _over_pairs(difference, max, wide, most, least),
        _over_pairs(ratio, min, wide, least, most),
    )


def _over_pairs(
    combine: Callable[[Estimate, Estimate], Estimate],
    pick: Callable[[list[float]], float],
    each: Sequence[Estimate],
    a: int,
    b: int,
) -> Estimate:
    """The extreme over ordered pairs: the largest difference, or the smallest ratio."""
    found = [
        combine(each[i], each[j]) for i in range(len(each)) for j in range(len(each)) if i != j
    ]
    ends = [
        [end for end in ends if end == end]
        for ends in ([one.low for one in found], [one.high for one in found])
    ]
    low, high = (pick(values) if values else float("nan") for values in ends)
    return Estimate(combine(each[a], each[b]).value, low, high)
