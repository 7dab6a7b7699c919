"""Nodes sorted by group, and the sums of each group, from which means and errors follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GroupSums:
    """N, S = Σ loss, Q = Σ loss² and R = Σ right, each (samples, groups), in float64."""

    count: Floats
    total: Floats
    square: Floats
    right: Floats

    def joined(self, member: Ints) -> GroupSums:
        """The sums of unions of groups; ``member`` is the union of each group.

        Every union, 0 to the highest, must have a member.
        """
        order = np.argsort(member, kind="stable")
        first = np.flatnonzero(np.diff(member[order], prepend=-1))
        each = vars(self).values()
        return GroupSums(*(np.add.reduceat(sums[:, order], first, axis=1) for sums in each))

    def others(self) -> GroupSums:
        """For every group, the sums of all the other groups."""
        return GroupSums(*(sums.sum(1, keepdims=True) - sums for sums in vars(self).values()))

    @np.errstate(divide="ignore", invalid="ignore")
    def moments(self) -> tuple[Floats, Floats]:
        """Mean loss and its variance s²/N of every group; NaN for fewer than two nodes."""
        mean = self.total / self.count
        spread = np.maximum(self.square - self.count * mean**2, 0) / (self.count - 1)
        return mean, np.where(self.count > 1, spread / self.count, np.nan)


@dataclass(frozen=True)
class GroupedScores:
    """The evaluated nodes sorted by group (one degree, say), each group a slice.

    ``value`` (groups,) rises; ``start`` and ``count`` are each group's slice; ``loss`` and
    ``right`` (nodes,) are in the sorted order, and ``order`` maps it to the original one.
    """

    value: Floats
    count: Ints
    start: Ints
    order: Ints
    loss: Floats
    right: Floats

    @classmethod
    def of(cls, value: npt.NDArray[np.generic], loss: Floats, right: Floats) -> GroupedScores:
        """Sort nodes by ``value``: the nodes of equal value are a group."""
        order = np.argsort(value, kind="stable")
        present, start, count = np.unique(value[order], return_index=True, return_counts=True)
        return cls(
            present.astype(np.float64), count, start, order, loss[order], right[order].astype(float)
        )

    def with_loss(self, loss: Floats) -> GroupedScores:
        """The same groups with other losses, in the original order of the nodes."""
        return replace(self, loss=loss[self.order])

    def sum(self, values: Floats) -> Floats:
        """The sum of each group's ``values``, which are in the sorted order."""
        return np.add.reduceat(values, self.start)

    def sums(self) -> GroupSums:
        """N, S, Q and R of every group, as a single row."""
        each = (np.ones_like(self.loss), self.loss, self.loss**2, self.right)
        return GroupSums(*(self.sum(values)[None] for values in each))

    @property
    def mean_loss(self) -> Floats:
        """AvgCE(k)."""
        return self.sum(self.loss) / self.count

    @property
    def bias(self) -> float:
        """Var({AvgCE(k)}), the paper's bias; NaN for one group only."""
        return float(self.mean_loss.var(ddof=1)) if len(self.count) > 1 else float("nan")
