"""Nodes grouped by degree: the groups of equal degree, the outer quarters, the smallest group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

SMALLEST_GROUP = 10
"""Nodes under which a group has no interval and is never named worst or best: of fewer nodes no
kind of interval covers the mean of a skewed loss as often as it says."""


@dataclass(frozen=True)
class DegreeGroups:
    """The nodes that share a degree, D_k in the paper.

    Attributes:
        degree: The degrees present, in rising order, (groups,).
        count: The number of nodes of each, (groups,).
        member: The position in ``degree`` of every node, (nodes,).
    """

    degree: Tensor
    count: Tensor
    member: Tensor

    @classmethod
    def of(cls, degree: Tensor) -> DegreeGroups:
        """Group nodes by their ``degree``, (nodes,)."""
        present, member, count = torch.unique(degree, return_inverse=True, return_counts=True)
        return cls(present, count, member)

    def total(self, values: Tensor) -> Tensor:
        """Return the sum of each group's ``values``, in float64."""
        zeros = torch.zeros(len(self.degree), dtype=torch.float64, device=values.device)
        return zeros.index_add_(0, self.member, values.double())

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of each group's ``values``, in float64: AvgCE(k) if they are CE(u)."""
        return self.total(values) / self.count


def degree_quarters(degree: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the 25th and the 75th percentile of the evaluated nodes' degrees.

    Low-degree nodes are those at or under the first, high-degree nodes those at or over the second.
    As many nodes share a degree, a quarter may hold more than a fourth of them.

    Args:
        degree: The degrees of the evaluated nodes, (nodes,).

    Returns:
        Both percentiles, linearly interpolated.
    """
    low, high = np.percentile(degree, [25, 75])
    return float(low), float(high)
