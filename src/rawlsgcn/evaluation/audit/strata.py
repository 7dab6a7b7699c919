"""The evaluated nodes sorted by group, with their scores: what every statistic here works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .sums import Sums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Strata:
    """Groups of equal value (one degree, say), each a slice of the sorted nodes.

    ``value`` (groups,) rises; ``count`` and ``start`` say where a group lies; ``loss`` and
    ``right`` (nodes,) are in the sorted order; ``order`` leads from there to the nodes given.
    """

    value: Floats
    count: Ints
    start: Ints
    order: Ints
    loss: Floats
    right: Floats

    @classmethod
    def of(cls, value: npt.NDArray[np.generic], loss: Floats, right: Floats) -> Strata:
        order = np.argsort(value, kind="stable")
        present, start, count = np.unique(value[order], return_index=True, return_counts=True)
        return cls(
            present.astype(np.float64), count, start, order, loss[order], right[order].astype(float)
        )

    def with_loss(self, loss: Floats) -> Strata:
        """The same groups with other losses, given in the nodes' own order."""
        return Strata(self.value, self.count, self.start, self.order, loss[self.order], self.right)

    def sum(self, values: Floats) -> Floats:
        """The sum of each group's ``values``, which are in the sorted order."""
        return np.add.reduceat(values, self.start)

    def sums(self) -> Sums:
        """N, S, Q and R of every group, as a single row."""
        parts = (np.ones_like(self.loss), self.loss, self.loss**2, self.right)
        return Sums(*(self.sum(each)[None] for each in parts))

    @property
    def mean_loss(self) -> Floats:
        """AvgCE(k)."""
        return self.sum(self.loss) / self.count

    @property
    def bias(self) -> float:
        """Var({AvgCE(k)}), the paper's bias; NaN for one group only."""
        return float(self.mean_loss.var(ddof=1)) if len(self.count) > 1 else float("nan")
