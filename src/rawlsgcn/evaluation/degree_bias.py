"""Nodes grouped by degree, and the paper's bias: the variance, over degrees, of the mean loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

SMALLEST_GROUP = 10
"""Nodes under which a group has no interval and is never named worst or best: of fewer nodes no
kind of interval covers the mean of a skewed loss as often as it says."""
LINE_NODES = 6
"""The paper's Figures 1 and 3 draw a line through the degrees of more than five nodes."""


@dataclass(frozen=True)
class DegreeGroups:
    """The nodes that share a degree, D_k in the paper."""

    degree: Tensor  #: the degrees present, in rising order, (groups,)
    count: Tensor  #: the number of nodes of each, (groups,)
    member: Tensor  #: the position in ``degree`` of every node, (nodes,)

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


def node_scores(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the cross entropy CE(u) of every node and whether it is classified correctly.

    Where the loss is not a number, neither is the correctness: the largest of a row with NaN in it
    means nothing, and a diverged model must not look lucky.

    Args:
        logits: Scores before any softmax, (nodes, classes).
        y: Classes, (nodes,).

    Returns:
        Loss and correctness (0 or 1), both float64, (nodes,).
    """
    logits = logits.double()
    loss = -torch.log_softmax(logits, -1).gather(-1, y.unsqueeze(-1)).squeeze(-1)
    right = (logits.argmax(-1) == y).double()
    return loss, right.masked_fill_(loss.isnan(), math.nan)


def variance(means: Tensor) -> float:
    """The bias Var({AvgCE(k)}), with n - 1, of the degrees' mean losses; NaN for fewer than two."""
    return float(means.var(correction=1)) if len(means) > 1 else math.nan


def regression_line(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Slope and intercept of a least squares line through points; NaN for fewer than two."""
    x, y = x.double(), y.double()
    if len(x) < 2:
        return math.nan, math.nan
    away = x - x.mean()
    # y is centered too: without it a constant y of large size would leave a slope of rounding.
    slope = float((away * (y - y.mean())).sum() / away.square().sum())
    return slope, float(y.mean()) - slope * float(x.mean())


def degree_line(groups: DegreeGroups, means: Tensor) -> tuple[float, float]:
    """Fit the line in the paper's Figures 1 and 3 through the ``means`` of the degrees.

    Every group of more than five nodes is one point, whatever its size.
    """
    drawn = groups.count >= LINE_NODES
    return regression_line(groups.degree[drawn], means[drawn])
