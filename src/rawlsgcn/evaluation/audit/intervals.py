"""Confidence intervals: of shares, means, their differences and ratios, and of the trend by degree.

The trend is the slope of loss and accuracy on the logarithm of the degree, over all nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..degree_bias import SMALLEST_GROUP
from .findings import Estimate, Slope
from .group_statistics import GroupedScores, GroupSums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LEVEL = 0.95
"""The confidence level of every interval of an audit."""


class GroupMeans:
    """Accuracy and mean loss of groups of nodes, with intervals.

    ``seen`` are the sums of the groups, as a single row, and ``drawn`` those of every bootstrap
    draw. If ``zero_one``, the loss is 1 - right. Its mean is then a share, of which a draw without
    spread has no t, so its interval is the accuracy's, mirrored. The means, the shares of correct
    answers (``rate``) and the ends of both are (groups,); ends are NaN for groups too small.
    """

    def __init__(
        self, seen: GroupSums, drawn: GroupSums, level: float = LEVEL, zero_one: bool = False
    ) -> None:
        self._seen, self._drawn, self._level, self._zero_one = seen, drawn, level, zero_one
        self.count, self.right = seen.count[0], seen.right[0]
        self.mean, error = (each[0] for each in seen.moments())
        with np.errstate(divide="ignore", invalid="ignore"):
            self.rate = self.right / self.count
        rate_ends = wilson(self.right, self.count, level)
        if zero_one:
            ends = 1 - rate_ends[1], 1 - rate_ends[0]
        else:
            drawn_mean, drawn_error = drawn.moments()
            ends = bootstrap_t(self.mean, np.sqrt(error), drawn_mean, np.sqrt(drawn_error), level)
            ends = np.maximum(ends[0], 0), ends[1]  # no loss is negative
        large = self.count >= SMALLEST_GROUP
        self.loss_ends = [np.where(large, end, np.nan) for end in ends]
        self.rate_ends = [np.where(large, end, np.nan) for end in rate_ends]

    @classmethod
    def of(
        cls, grouped: GroupedScores, drawn: GroupSums, member: Ints, zero_one: bool = False
    ) -> GroupMeans:
        """Unions of the groups of ``grouped``; ``member`` is the union of each group."""
        return cls(grouped.sums().joined(member), drawn.joined(member), zero_one=zero_one)

    def others(self) -> GroupMeans:
        """For every group, all nodes but its own."""
        return GroupMeans(self._seen.others(), self._drawn.others(), self._level, self._zero_one)

    def loss(self, k: int) -> Estimate:
        """The mean loss of group ``k``."""
        return Estimate.of(self.mean, self.loss_ends, k)

    def accuracy(self, k: int) -> Estimate:
        """The accuracy of group ``k``, in per cent."""
        return Estimate.of(self.rate, self.rate_ends, k, by=100)


def normal_quantile(level: float) -> float:
    """z with P(|Z| <= z) = level."""
    return float(ndtri((1 + level) / 2))


@np.errstate(divide="ignore", invalid="ignore")
def wilson(right: Floats, nodes: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Wilson's score interval of a share: every p with |p̂ - p| <= z sqrt(p (1 - p) / n).

    The bootstrap of a share is binomial and needs no draws, but its percentiles cover too little,
    and nothing at all where everybody is right.
    """
    z = normal_quantile(level)
    p = right / nodes
    middle = (p + z**2 / (2 * nodes)) / (1 + z**2 / nodes)
    half = z / (1 + z**2 / nodes) * np.sqrt(p * (1 - p) / nodes + z**2 / (4 * nodes**2))
    # Rounding must not exclude the share itself where it is 0 or 1.
    low = np.where(right <= 0, 0.0, np.maximum(middle - half, 0))
    high = np.where(right >= nodes, 1.0, np.minimum(middle + half, 1))
    return np.where(nodes > 0, low, np.nan), np.where(nodes > 0, high, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def bootstrap_t(
    seen: Floats, error: Floats, drawn: Floats, drawn_error: Floats, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """The studentized bootstrap interval (Efron 1979; Hall 1988), for several figures at once.

    ``seen`` and its standard ``error`` are (figures,), ``drawn`` and ``drawn_error`` (resamples,
    figures). With t* = (drawn - seen) / drawn_error,

        [seen - t*_(1 - α/2) error, seen - t*_(α/2) error]

    which, unlike the percentiles, follows the skewness of a loss to second order.
    """
    t = (drawn - seen) / drawn_error
    # Where every draw is the same (a constant loss) there is no t, and nothing is uncertain.
    low, high = np.where(error == 0, 0, _quantiles(np.where(np.isfinite(t), t, np.nan), level))
    return seen - high * error, seen - low * error


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b of two separate groups, from the interval of each: see :func:`difference_ends`."""
    low, high = difference_ends(astuple(a), astuple(b))
    return Estimate(a.value - b.value, float(low), float(high))


def difference_ends(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any]:
    """The interval of a - b (MOVER; Newcombe 1998), for (value, low, high) or arrays of them.

    low = a - b - sqrt((a - l_a)² + (u_b - b)²),   high = a - b + sqrt((u_a - a)² + (b - l_b)²)
    """
    away = a[0] - b[0]
    return away - np.hypot(a[0] - a[1], b[2] - b[0]), away + np.hypot(a[2] - a[0], b[0] - b[1])


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """a / b of two separate groups, neither negative (MOVER-R; Donner and Zou 2012).

    An end is NaN where one of the intervals is not known, or where there is no bound.
    """
    value = a.value / b.value if b.value > 0 else math.nan
    if not np.isfinite([a.low, a.high, b.low, b.high]).all():
        return Estimate(value)
    product = a.value * b.value
    inside = product**2 - a.low * b.high * (2 * a.value - a.low) * (2 * b.value - b.high)
    below = b.high * (2 * b.value - b.high)
    low = (product - math.sqrt(max(inside, 0))) / below if below != 0 else math.nan
    inside = product**2 - a.high * b.low * (2 * a.value - a.high) * (2 * b.value - b.low)
    above = b.low * (2 * b.value - b.low)
    high = (product + math.sqrt(max(inside, 0))) / above if above > 0 else math.nan
    return Estimate(value, 0.0 if a.low <= 0 else low, high)


def paired_mean(values: Floats) -> Estimate:
    """The mean of single values (differences of the same nodes) with Student's interval."""
    from scipy.stats import t as student

    nodes = len(values)
    mean = float(values.mean()) if nodes else math.nan
    if nodes < SMALLEST_GROUP:
        return Estimate(mean)
    margin = float(student.ppf((1 + LEVEL) / 2, nodes - 1)) * float(values.std(ddof=1))
    margin /= math.sqrt(nodes)
    return Estimate(mean, mean - margin, mean + margin)


def log_scale(values: Floats) -> str | None:
    """Choose the logarithm of a column for slopes and for the axes of figures.

    "one more", log(1 + value), for counts such as degrees, so that nodes without neighbors have a
    finite value; "plain", log(value), for other positive numbers; None for anything else, or for
    fewer than two different values.
    """
    if len(np.unique(values)) < 2 or not np.isfinite(values).all():
        return None
    if (values >= 0).all() and (values == np.floor(values)).all():
        return "one more"
    return "plain" if (values > 0).all() else None


def slopes(grouped: GroupedScores, drawn: GroupSums) -> Slope | None:
    """Fit loss and accuracy by least squares over all nodes on x = log2(1 + degree).

    Other positive columns are taken on log2 of their values; None where there is no
    :func:`log_scale`. The intervals are the studentized bootstrap of pairs (degree, loss), with the
    standard error that allows every node its own variance (White 1980, HC1):

        b = Σ (x - x̄) y / Σ (x - x̄)²,   se² = n / (n - 2) Σ (x - x̄)² e² / (Σ (x - x̄)²)².

    As x is the same for all nodes of a degree, both follow from the sums of the groups. With fewer
    than ``SMALLEST_GROUP`` nodes there is no interval, and none for the accuracy with fewer correct
    or wrong answers than that.
    """
    kind = log_scale(grouped.value)
    if kind is None:
        return None
    x, both = np.log2(grouped.value + (kind == "one more")), (grouped.sums(), drawn)
    right = grouped.right.sum()
    rate_known = min(right, len(grouped.loss) - right) >= SMALLEST_GROUP
    loss_known = len(grouped.loss) >= SMALLEST_GROUP
    if np.array_equal(grouped.loss, 1 - grouped.right):
        loss_known = rate_known
    loss, loss_r = _slope([_fit(x, each.count, each.total, each.square) for each in both])
    # A right answer is 0 or 1, so its square is itself.
    rate, _ = _slope([_fit(x, each.count, each.right, each.right) for each in both], 100)
    return Slope(
        loss if loss_known else Estimate(loss.value),
        rate if rate_known else Estimate(rate.value),
        loss_r,
        kind,
    )


def _quantiles(t: Floats, level: float) -> Floats:
    """Both ends of the middle ``level`` of every column, without its NaN: (2, columns)."""
    ends = [(1 - level) / 2, (1 + level) / 2]
    whole = ~np.isnan(t).any(0)
    found = np.full((2, t.shape[1]), np.nan)
    if whole.any():
        found[:, whole] = np.quantile(t[:, whole], ends, axis=0)
    for column in np.flatnonzero(~whole):
        kept = t[~np.isnan(t[:, column]), column]
        if len(kept) > 1:
            found[:, column] = np.quantile(kept, ends)
    return found


def _slope(fits: Sequence[tuple[Floats, Floats, Floats]], by: float = 1) -> tuple[Estimate, float]:
    """The slope and the correlation, from the fits of the data and of the draws."""
    (slope, error, correlation), (drawn_slope, drawn_error, _) = fits
    ends = bootstrap_t(slope, error, drawn_slope[:, None], drawn_error[:, None])
    return Estimate.of(slope, ends, by=by), float(correlation[0])


@np.errstate(divide="ignore", invalid="ignore")
def _fit(x: Floats, count: Floats, total: Floats, square: Floats) -> tuple[Floats, Floats, Floats]:
    """Slope, standard error and correlation of every row of (rows, groups) sums."""
    nodes = count.sum(1, keepdims=True)
    middle, mean = (count @ x)[:, None] / nodes, total.sum(1, keepdims=True) / nodes
    away = x - middle
    spread = (count * away**2).sum(1)
    # Around the mean, so that of a constant loss the slope is 0 and not rounding.
    slope = (away * (total - mean * count)).sum(1) / spread
    fitted = mean + slope[:, None] * away
    squares = square - 2 * fitted * total + fitted**2 * count
    meat = (away**2 * np.maximum(squares, 0)).sum(1)
    error = np.sqrt(meat * nodes[:, 0] / (nodes[:, 0] - 2)) / spread
    variance = square.sum(1) - nodes[:, 0] * mean[:, 0] ** 2
    correlation = slope * np.sqrt(spread / variance)
    return slope, error, np.where(np.isfinite(correlation), correlation, math.nan)
