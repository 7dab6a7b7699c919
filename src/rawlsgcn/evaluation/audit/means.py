"""Accuracy and mean loss of groups of nodes, with intervals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .intervals import SMALLEST, bootstrap_t, wilson
from .parts import Estimate
from .resampling import Sums
from .strata import Strata

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Means:
    """Accuracy and mean loss of groups that are unions of the fine ones, with intervals."""

    def __init__(
        self, strata: Strata, drawn: Sums, member: Ints, groups: int, level: float = 0.95
    ) -> None:
        self.count: Floats = np.bincount(member, strata.count, groups).astype(float)
        self.right: Floats = np.bincount(member, strata.sum(strata.right), groups).astype(float)
        total = np.bincount(member, strata.sum(strata.loss), groups)
        self.mean = total / self.count
        deviation = strata.loss - np.repeat(self.mean[member], strata.count)
        inside = np.bincount(member, strata.sum(deviation**2), groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(inside / (self.count - 1) / self.count)
        mean, variance = drawn.joined(member, groups).moments()
        self.ends = bootstrap_t(self.mean, error, mean, np.sqrt(variance), level)
        self.rate_ends = wilson(self.right, self.count, level)

    def loss(self, k: int) -> Estimate:
        if self.count[k] < SMALLEST:
            return Estimate(float(self.mean[k]))
        return Estimate(float(self.mean[k]), float(self.ends[0][k]), float(self.ends[1][k]))

    def accuracy(self, k: int) -> Estimate:
        rate = 100 * float(self.right[k] / self.count[k])
        if self.count[k] < SMALLEST:
            return Estimate(rate)
        low, high = (100 * float(end[k]) for end in self.rate_ends)
        return Estimate(rate, low, high)
