"""Nodes by degree: the loss of each node, and the means of the groups of equal degree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LINE_NODES = 6
"""Smallest group a line is drawn through or a worst-off degree named: 'more than five nodes'."""


def node_scores(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """CE(u) and whether node u is classified rightly, both float64, shape (nodes,).

    ``logits`` is (nodes, classes). Where the loss is not a number, neither is the correctness: the
    largest of a row with NaN in it means nothing, and a diverged model must not look lucky.
    """
    logits = logits.double()
    loss = -torch.log_softmax(logits, -1).gather(-1, y.unsqueeze(-1)).squeeze(-1)
    right = (logits.argmax(-1) == y).double()
    return loss, right.masked_fill_(loss.isnan(), math.nan)


@dataclass(frozen=True)
class DegreeGroups:
    """The nodes that share a degree: D_k in the paper.

    ``degree`` holds the degrees present in rising order, ``count`` the nodes of each, ``member``
    the position in ``degree`` of every node.
    """

    degree: Tensor
    count: Tensor
    member: Tensor

    @classmethod
    def of(cls, degree: Tensor) -> DegreeGroups:
        present, member, count = torch.unique(degree, return_inverse=True, return_counts=True)
        return cls(present, count, member)

    def total(self, values: Tensor) -> Tensor:
        """The sum of each group's ``values``, in float64."""
        zeros = torch.zeros(len(self.degree), dtype=torch.float64, device=values.device)
        return zeros.index_add_(0, self.member, values.double())

    def mean(self, values: Tensor) -> Tensor:
        """The mean of each group's ``values``, in float64: AvgCE(k) when they are CE(u)."""
        return self.total(values) / self.count


def variance(means: Tensor) -> float:
    """The sample variance (n-1) of the groups' means; of fewer than two it is NaN."""
    return float(means.var(correction=1)) if len(means) > 1 else math.nan


def regression_line(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Slope and intercept of the least squares line through the points; NaN for fewer than two."""
    x, y = x.double(), y.double()
    if len(x) < 2:
        return math.nan, math.nan
    away = x - x.mean()
    # y is centred too: without it a constant y of large size would leave a slope of rounding.
    slope = float((away * (y - y.mean())).sum() / away.square().sum())
    return slope, float(y.mean()) - slope * float(x.mean())


def degree_line(groups: DegreeGroups, means: Tensor) -> tuple[float, float]:
    """Slope and intercept of the line in the paper's Figures 1 and 3.

    Every group of more than five nodes is one point, whatever its size.
    """
    drawn = groups.count >= LINE_NODES
    return regression_line(groups.degree[drawn], means[drawn])
