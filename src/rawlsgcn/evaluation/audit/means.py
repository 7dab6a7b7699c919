"""Accuracy and mean loss of groups of nodes, with intervals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .intervals import SMALLEST, bootstrap_t, wilson
from .parts import Estimate
from .strata import Strata
from .sums import Sums

Ints = npt.NDArray[np.int64]


class Means:
    """Groups of nodes by the sums of what was ``seen`` (one row) and ``drawn``.

    With ``zero_one`` the loss is 1 - right. Its mean is a share then, of which a draw without
    spread has no t, so its interval is the accuracy's, mirrored.
    """

    def __init__(
        self, seen: Sums, drawn: Sums, level: float = 0.95, zero_one: bool = False
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
        strata: Strata,
        drawn: Sums,
        member: Ints,
        level: float = 0.95,
        zero_one: bool = False,
    ) -> Means:
        """Groups that are unions of the strata; ``member`` says to which each of them belongs."""
        return cls(strata.sums().joined(member), drawn.joined(member), level, zero_one)

    def others(self) -> Means:
        """For every group, all nodes but its own."""
        return Means(self._seen.others(), self._drawn.others(), self._level, self._zero_one)

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
