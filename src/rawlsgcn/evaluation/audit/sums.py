"""The sums of groups, from which means and their errors follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """N, S = Σ loss, Q = Σ loss² and R = Σ right, each (rows, groups), in float64."""

    count: Floats
    total: Floats
    square: Floats
    right: Floats

    def joined(self, member: npt.NDArray[np.int64], groups: int) -> Sums:
        """The sums of wider groups; ``member`` says to which of them each group belongs."""
        onto = np.zeros((len(member), groups))
        onto[np.arange(len(member)), member] = 1
        return Sums(*(each @ onto for each in (self.count, self.total, self.square, self.right)))

    def others(self) -> Sums:
        """For every group, the sums of all the other groups."""
        parts = (self.count, self.total, self.square, self.right)
        return Sums(*(each.sum(1, keepdims=True) - each for each in parts))

    def moments(self) -> tuple[Floats, Floats]:
        """Mean loss and its variance s²/N of every group; NaN where there are fewer than two."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.total / self.count
            spread = np.maximum(self.square - self.count * mean**2, 0) / (self.count - 1)
            error = np.where(self.count > 1, spread / self.count, np.nan)
        return mean, error
