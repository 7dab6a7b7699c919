"""The trend over nodes: the slope of loss and accuracy on the logarithm of the degree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..degree_bias import SMALLEST_GROUP
from .findings import Estimate, Slope
from .group_statistics import GroupedScores, GroupSums
from .intervals import bootstrap_t

Floats = npt.NDArray[np.float64]


def log_scale(values: Floats) -> str | None:
    """Choose the logarithm of a column for slopes and for the axes of figures.

    Args:
        values: The values of the column.

    Returns:
        "one more", log(1 + value), for counts such as degrees, so that nodes without neighbors have
        a finite value; "plain", log(value), for other positive numbers; None for anything else, or
        for fewer than two different values.
    """
    if len(np.unique(values)) < 2 or not np.isfinite(values).all():
        return None
    if (values >= 0).all() and (values == np.floor(values)).all():
        return "one more"
    return "plain" if (values > 0).all() else None


def slopes(grouped: GroupedScores, drawn: GroupSums, level: float = 0.95) -> Slope | None:
    """Fit loss and accuracy by least squares over all nodes on x = log2(1 + degree).

    Other positive columns are taken on log2 of their values. The intervals are the studentized
    bootstrap of pairs (degree, loss), with the standard error that allows every node its own
    variance (White 1980, HC1):

        b = Σ (x - x̄) y / Σ (x - x̄)²,   se² = n / (n - 2) Σ (x - x̄)² e² / (Σ (x - x̄)²)².

    As x is the same for all nodes of a degree, both follow from the sums of the groups.

    Args:
        grouped: The nodes by degree.
        drawn: The sums of the bootstrap draws.
        level: The confidence level.

    Returns:
        The slopes; None where the column has no :func:`log_scale`. With fewer than
        ``SMALLEST_GROUP`` nodes there is no interval, and none for the accuracy with fewer correct
        or wrong answers than that.
    """
    kind = log_scale(grouped.value)
    if kind is None:
        return None
    x = np.log2(grouped.value + (kind == "one more"))
    count = grouped.count.astype(float)
    right = grouped.sum(grouped.right)
    total, square = grouped.sum(grouped.loss), grouped.sum(grouped.loss**2)
    draws = (drawn.count, drawn.total, drawn.square, drawn.right)
    loss_known = count.sum() >= SMALLEST_GROUP
    rate_known = min(right.sum(), (count - right).sum()) >= SMALLEST_GROUP
    if np.array_equal(grouped.loss, 1 - grouped.right):
        loss_known = rate_known
    loss, loss_r = _slope(x, (count, total, square), (draws[0], draws[1], draws[2]), level)
    # A right answer is 0 or 1, so its square is itself.
    rate, rate_r = _slope(x, (count, right, right), (draws[0], draws[3], draws[3]), level)
    percent = Estimate(100 * rate.value, 100 * rate.low, 100 * rate.high)
    return Slope(
        loss if loss_known else Estimate(loss.value),
        percent if rate_known else Estimate(percent.value),
        loss_r,
        rate_r,
        kind,
    )


def _slope(
    x: Floats,
    seen: tuple[Floats, Floats, Floats],
    drawn: tuple[Floats, Floats, Floats],
    level: float,
) -> tuple[Estimate, float]:
    slope, error, correlation = _fit(x, *(each[None] for each in seen))
    drawn_slope, drawn_error, _ = _fit(x, *drawn)
    low, high = bootstrap_t(slope, error, drawn_slope[:, None], drawn_error[:, None], level)
    value = Estimate(float(slope[0]), float(low[0]), float(high[0]))
    return value, float(correlation[0])


def _fit(x: Floats, count: Floats, total: Floats, square: Floats) -> tuple[Floats, Floats, Floats]:
    """Slope, standard error and correlation of every row of (rows, groups) sums."""
    with np.errstate(divide="ignore", invalid="ignore"):
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
    correlation[~np.isfinite(correlation)] = math.nan
    return slope, error, correlation
