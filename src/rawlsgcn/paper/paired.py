"""Paired tests of two methods on the same seeds and the same nodes.

Under the null hypothesis the two methods are the same, so that at a seed, or at a node, their
losses may change places. The test over seeds tries every way of doing so; the one over nodes
draws some. Either gives the share of ways that come out at least as far as what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from .node_scores import Floats, Nodes

DRAWS = 999
LEVEL = 0.05
HOLDS, FAILS, UNCLEAR = "holds", "fails", "unclear"

# From the log bias of the first and of the second method, each (graphs, seeds), to a difference.
Statistic = Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class Paired:
    """A difference (negative: the first method's bias is lower) and its two p-values.

    ``p_seeds`` and ``p_nodes`` are one-sided, for a difference as low as this by chance.
    """

    difference: float
    p_seeds: float
    p_nodes: float
    q_seeds: float
    q_nodes: float

    @property
    def outcome(self) -> str:
        """Holds where both tests say lower, fails where both say higher."""
        if max(self.p_seeds, self.p_nodes) <= LEVEL:
            return HOLDS
        return FAILS if max(self.q_seeds, self.q_nodes) <= LEVEL else UNCLEAR


def mean_difference(first: Floats, second: Floats) -> float:
    """The mean difference of the log biases: the log of the ratio of their geometric means."""
    return float((first - second).mean())


def compare(
    pairs: Sequence[tuple[Nodes, Nodes]],
    measure: str = "loss",
    statistic: Statistic = mean_difference,
    draws: int = DRAWS,
) -> Paired:
    """Test whether the first of each pair has the lower bias; a pair for each graph.

    ``measure`` is "loss" for the bias, "calibrated" for the calibrated bias.
    """
    graphs = [_Graph(getattr(a, measure), getattr(b, measure), a.degree) for a, b in pairs]
    seeds = min(len(graph.first) for graph in graphs)
    first = np.stack([graph.log_bias(graph.sums[0])[:seeds] for graph in graphs])
    second = np.stack([graph.log_bias(graph.sums[1])[:seeds] for graph in graphs])
    seen = statistic(first, second)
    by_seeds = []
    for swapped in product((False, True), repeat=seeds):
        at = np.array(swapped)
        by_seeds.append(statistic(np.where(at, second, first), np.where(at, first, second)))
    rng = np.random.default_rng(0)
    by_nodes = [seen]
    for _ in range(draws):
        both = [graph.swapped(rng.random(graph.nodes) < 0.5) for graph in graphs]
        by_nodes.append(
            statistic(
                np.stack([a[:seeds] for a, _ in both]), np.stack([b[:seeds] for _, b in both])
            )
        )
    slack = 1e-9 * max(1.0, abs(seen))  # the same up to rounding is the same
    return Paired(
        seen,
        *(float(np.mean(np.array(each) <= seen + slack)) for each in (by_seeds, by_nodes)),
        *(float(np.mean(np.array(each) >= seen - slack)) for each in (by_seeds, by_nodes)),
    )


class _Graph:
    """The losses of two methods on one graph, summed by degree."""

    def __init__(self, first: Floats, second: Floats, degree: np.ndarray) -> None:
        order = np.argsort(degree, kind="stable")
        self.first, self.second = first[:, order], second[:, order]
        _, self.starts, self.counts = np.unique(
            degree[order], return_index=True, return_counts=True
        )
        self.nodes = len(degree)
        self.sums = [np.add.reduceat(each, self.starts, 1) for each in (self.first, self.second)]
        self.away = self.second - self.first

    def log_bias(self, sums: Floats) -> Floats:
        """The log of the sample variance over degrees of the mean losses, by seed."""
        if len(self.counts) < 2:
            return np.zeros(len(sums))
        variance = (sums / self.counts).var(1, ddof=1)
        logs: Floats = np.log(np.maximum(variance, 1e-300))
        return logs

    def swapped(self, at: np.ndarray) -> tuple[Floats, Floats]:
        """Both log biases with the losses of some nodes changed about."""
        moved = np.add.reduceat(self.away * at, self.starts, 1)
        return self.log_bias(self.sums[0] + moved), self.log_bias(self.sums[1] - moved)


@dataclass(frozen=True)
class Gain:
    """A difference of accuracies in points, with a 95 % interval over seeds and nodes."""

    points: float
    low: float
    high: float

    def not_below(self, margin: float) -> str:
        """Whether the first method is worse by ``margin`` points at most."""
        if self.low > -margin:
            return HOLDS
        return FAILS if self.high < -margin else UNCLEAR


def accuracy_gain(first: Nodes, second: Nodes) -> Gain:
    """The first method's accuracy less the second's, paired by seed and by node.

    The variance of the mean is that of the seeds' means plus that of the nodes' means.
    """
    seeds = min(len(first.right), len(second.right))
    away = 100 * (first.right[:seeds].astype(float) - second.right[:seeds])
    error = math.sqrt(sum(_variance_of_mean(away.mean(axis)) for axis in (0, 1)))
    points = float(away.mean())
    return Gain(points, points - 1.96 * error, points + 1.96 * error)


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
