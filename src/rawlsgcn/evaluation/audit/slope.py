"""The trend over nodes: how loss and accuracy change with each doubling of the degree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .intervals import SMALLEST, bootstrap_t
from .parts import Estimate, Slope
from .strata import Strata
from .sums import Sums

Floats = npt.NDArray[np.float64]


def slopes(strata: Strata, drawn: Sums, level: float = 0.95) -> Slope | None:
    """Least squares over nodes of x = log2(degree); None with fewer than two such degrees.

    Nodes without neighbours have no logarithm and are left out. The intervals are the studentised
    bootstrap of pairs (degree, loss), with the standard error that allows every node a variance
    of its own (White 1980, HC1):

        b = Σ (x - x̄) y / Σ (x - x̄)²,   se² = n / (n - 2) Σ (x - x̄)² e² / (Σ (x - x̄)²)².

    As x is the same for all nodes of a degree, both follow from the sums of the groups. Under
    ``SMALLEST`` nodes there is no interval; of answers, neither with fewer right or wrong ones.
    """
    positive = strata.value > 0
    if positive.sum() < 2:
        return None
    x = np.log2(strata.value[positive])
    count = strata.count[positive].astype(float)
    right = strata.sum(strata.right)[positive]
    total, square = strata.sum(strata.loss)[positive], strata.sum(strata.loss**2)[positive]
    draws = [each[:, positive] for each in (drawn.count, drawn.total, drawn.square, drawn.right)]
    told = count.sum() >= SMALLEST
    rate_told = min(right.sum(), (count - right).sum()) >= SMALLEST
    if np.array_equal(strata.loss, 1 - strata.right):
        told = rate_told
    loss, loss_r = _slope(x, (count, total, square), (draws[0], draws[1], draws[2]), level)
    # A right answer is 0 or 1, so its square is itself.
    rate, rate_r = _slope(x, (count, right, right), (draws[0], draws[3], draws[3]), level)
    percent = Estimate(100 * rate.value, 100 * rate.low, 100 * rate.high)
    return Slope(
        loss if told else Estimate(loss.value),
        percent if rate_told else Estimate(percent.value),
        loss_r,
        rate_r,
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
        slope = (away * total).sum(1) / spread
        fitted = mean + slope[:, None] * away
        squares = square - 2 * fitted * total + fitted**2 * count
        meat = (away**2 * np.maximum(squares, 0)).sum(1)
        error = np.sqrt(meat * nodes[:, 0] / (nodes[:, 0] - 2)) / spread
        variance = square.sum(1) - nodes[:, 0] * mean[:, 0] ** 2
        correlation = slope * np.sqrt(spread / variance)
    correlation[~np.isfinite(correlation)] = math.nan
    return slope, error, correlation
