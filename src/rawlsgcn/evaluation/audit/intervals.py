"""Intervals that cover what they say: of shares, of means, of their differences and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from .findings import Estimate
from .group_statistics import GroupedScores, GroupSums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Interval = Sequence[Floats]
"""Values with the low and the high ends of their intervals."""
SMALLEST = 10
"""Nodes under which a group is too small to say anything: not even 95 % of a skewed loss's
intervals would cover its mean, whichever way they are made."""


def normal_quantile(level: float) -> float:
    """z with P(|Z| <= z) = level."""
    return float(ndtri((1 + level) / 2))


def wilson(right: Floats, nodes: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's score interval of a share: every p with |p̂ - p| <= z sqrt(p (1 - p) / n).

    The bootstrap of a share is binomial and needs no draws, but its percentiles cover too little,
    and nothing at all where everybody is right.
    """
    z = normal_quantile(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = right / nodes
        middle = (p + z**2 / (2 * nodes)) / (1 + z**2 / nodes)
        half = z / (1 + z**2 / nodes) * np.sqrt(p * (1 - p) / nodes + z**2 / (4 * nodes**2))
    # Rounding must not leave out the share seen where it is 0 or 1.
    low = np.where(right <= 0, 0.0, np.maximum(middle - half, 0))
    high = np.where(right >= nodes, 1.0, np.minimum(middle + half, 1))
    return np.where(nodes > 0, low, np.nan), np.where(nodes > 0, high, np.nan)


def bootstrap_t(
    seen: Floats, error: Floats, drawn: Floats, drawn_error: Floats, level: float = 0.95
) -> tuple[Floats, Floats]:
    """The studentised bootstrap interval (Efron 1979; Hall 1988), for several figures at once.

    ``seen`` and its standard ``error`` are (figures,), ``drawn`` and ``drawn_error`` (resamples,
    figures). With t* = (drawn - seen) / drawn_error,

        [seen - t*_(1 - α/2) error, seen - t*_(α/2) error]

    which, unlike the percentiles, follows the skewness of a loss to second order.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn - seen) / drawn_error
    t = np.where(np.isfinite(t), t, np.nan)
    low, high = _quantiles(t, level)
    # Where every draw is the same (a constant loss) there is no t, and nothing is uncertain.
    constant = error == 0
    low, high = np.where(constant, 0, low), np.where(constant, 0, high)
    with np.errstate(invalid="ignore"):  # no error can be told of two nodes
        return seen - high * error, seen - low * error


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b of two separate groups, from the interval of each: see :func:`difference_ends`."""
    low, high = difference_ends(_parts(a), _parts(b))
    return Estimate(a.value - b.value, float(low), float(high))


def difference_ends(a: Interval, b: Interval) -> tuple[Floats, Floats]:
    """The interval of a - b (MOVER; Newcombe 1998), for arrays of (value, low, high).

    low = a - b - sqrt((a - l_a)² + (u_b - b)²),   high = a - b + sqrt((u_a - a)² + (b - l_b)²)
    """
    away = a[0] - b[0]
    return away - np.hypot(a[0] - a[1], b[2] - b[0]), away + np.hypot(a[2] - a[0], b[0] - b[1])


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """a / b of two separate groups, neither negative: see :func:`ratio_ends`."""
    value = a.value / b.value if b.value > 0 else math.nan
    low, high = ratio_ends(_parts(a), _parts(b))
    return Estimate(value, float(low), float(high))


def ratio_ends(a: Interval, b: Interval) -> tuple[Floats, Floats]:
    """The interval of a / b (MOVER-R; Donner and Zou 2012), for arrays of (value, low, high).

    NaN where an end of either is not known, or where there is no bound.
    """
    product = a[0] * b[0]
    known = np.isfinite(a[1]) & np.isfinite(a[2]) & np.isfinite(b[1]) & np.isfinite(b[2])
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = product**2 - a[1] * b[2] * (2 * a[0] - a[1]) * (2 * b[0] - b[2])
        below = b[2] * (2 * b[0] - b[2])
        low = np.where(below != 0, (product - np.sqrt(np.maximum(inside, 0))) / below, np.nan)
        low = np.where(a[1] <= 0, 0.0, low)
        inside = product**2 - a[2] * b[1] * (2 * a[0] - a[2]) * (2 * b[0] - b[1])
        above = b[1] * (2 * b[0] - b[1])
        high = np.where(above > 0, (product + np.sqrt(np.maximum(inside, 0))) / above, np.nan)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _parts(estimate: Estimate) -> Interval:
    value, low, high = np.array([estimate.value, estimate.low, estimate.high])
    return value, low, high


def paired_mean(values: Floats, level: float = 0.95) -> Estimate:
    """The mean of single values (differences of the same nodes) with Student's interval."""
    from scipy.stats import t as student

    nodes = len(values)
    mean = float(values.mean()) if nodes else math.nan
    if nodes < SMALLEST:
        return Estimate(mean)
    margin = float(student.ppf((1 + level) / 2, nodes - 1)) * float(values.std(ddof=1))
    margin /= math.sqrt(nodes)
    return Estimate(mean, mean - margin, mean + margin)


def _quantiles(t: Floats, level: float) -> tuple[Floats, Floats]:
    """Both ends of the middle ``level`` of every column, NaN left out."""
    ends = [(1 - level) / 2, (1 + level) / 2]
    whole = ~np.isnan(t).any(0)
    low, high = np.full((2, t.shape[1]), np.nan)
    if whole.any():
        low[whole], high[whole] = np.quantile(t[:, whole], ends, axis=0)
    for column in np.flatnonzero(~whole):
        kept = t[~np.isnan(t[:, column]), column]
        if len(kept) > 1:
            low[column], high[column] = np.quantile(kept, ends)
    return low, high


class GroupMeans:
    """Groups of nodes by the sums of what was ``seen`` (one row) and ``drawn``.

    With ``zero_one`` the loss is 1 - right. Its mean is a share then, of which a draw without
    spread has no t, so its interval is the accuracy's, mirrored.
    """

    def __init__(
        self, seen: GroupSums, drawn: GroupSums, level: float = 0.95, zero_one: bool = False
    ) -> None:
        self._seen, self._drawn, self._level, self._zero_one = seen, drawn, level, zero_one
        self.count, self.right = seen.count[0], seen.right[0]
        self._rate_ends = wilson(self.right, self.count, level)
        mean, error = (each[0] for each in seen.moments())
        self.mean = mean
        if zero_one:
            self._ends = 1 - self._rate_ends[1], 1 - self._rate_ends[0]
        else:
            drawn_mean, drawn_error = drawn.moments()
            self._ends = bootstrap_t(mean, np.sqrt(error), drawn_mean, np.sqrt(drawn_error), level)

    @classmethod
    def of(
        cls,
        grouped: GroupedScores,
        drawn: GroupSums,
        member: Ints,
        level: float = 0.95,
        zero_one: bool = False,
    ) -> GroupMeans:
        """Groups that are unions of the grouped; ``member`` says to which each of them belongs."""
        return cls(grouped.sums().joined(member), drawn.joined(member), level, zero_one)

    def others(self) -> GroupMeans:
        """For every group, all nodes but its own."""
        return GroupMeans(self._seen.others(), self._drawn.others(), self._level, self._zero_one)

    def loss(self, k: int) -> Estimate:
        if self.count[k] < SMALLEST:
            return Estimate(float(self.mean[k]))
        return Estimate(float(self.mean[k]), float(self._ends[0][k]), float(self._ends[1][k]))

    def accuracy(self, k: int) -> Estimate:
        rate = 100 * float(self.right[k] / self.count[k]) if self.count[k] else float("nan")
        if self.count[k] < SMALLEST:
            return Estimate(rate)
        low, high = (100 * float(end[k]) for end in self._rate_ends)
        return Estimate(rate, low, high)
