"""Paired permutation tests of two methods on the same seeds and the same nodes.

Under the null hypothesis the two methods are the same, so that their losses may be swapped at any
seed, or at any node. The test over seeds tries every way of swapping, the test over nodes draws
some at random. Each p-value is the share of ways that give a difference at least as large as the
observed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..evaluation.audit.resampling import p_values
from .trials import Floats, NodeLosses

DRAWS = 999
LEVEL = 0.05
HOLDS, FAILS, UNCLEAR = "holds", "fails", "unclear"

# From the log bias of the first and of the second method, each (graphs, seeds), to a difference.
Statistic = Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class PairedTest:
    """A difference of log biases and its one-sided p-values, over seeds and over nodes.

    A negative difference says that the first method has the lower bias; ``p_seeds`` and
    ``p_nodes`` are for a difference as low by chance, ``q_seeds`` and ``q_nodes`` for one as high.
    """

    difference: float
    p_seeds: float
    p_nodes: float
    q_seeds: float
    q_nodes: float

    @property
    def outcome(self) -> str:
        """Return "holds" where both tests say lower, "fails" where higher, else "unclear"."""
        if max(self.p_seeds, self.p_nodes) <= LEVEL:
            return HOLDS
        return FAILS if max(self.q_seeds, self.q_nodes) <= LEVEL else UNCLEAR


def mean_difference(first: Floats, second: Floats) -> float:
    """Return the log of the ratio of the geometric means of the biases."""
    return float((first - second).mean())


def paired_bias_test(
    pairs: Sequence[tuple[NodeLosses, NodeLosses]],
    measure: str = "loss",
    statistic: Statistic = mean_difference,
    draws: int = DRAWS,
) -> PairedTest:
    """Test whether the first of each pair has the lower bias.

    Args:
        pairs: The node losses of two methods, one pair for each graph.
        measure: ``"loss"`` for the bias, ``"calibrated"`` for the calibrated bias.
        statistic: The difference to test, a function of the two log biases.
        draws: How many random ways of swapping nodes are tried.

    Returns:
        The observed difference and its p-values.
    """
    graphs = [_LossesByDegree(getattr(a, measure), getattr(b, measure), a.degree) for a, b in pairs]
    seeds = min(len(graph.sums[0]) for graph in graphs)
    first, second = (
        np.stack([graph.log_bias(graph.sums[which])[:seeds] for graph in graphs])
        for which in (0, 1)
    )
    seen = statistic(first, second)
    by_seeds = []
    for swapped in product((False, True), repeat=seeds):
        at = np.array(swapped)
        by_seeds.append(statistic(np.where(at, second, first), np.where(at, first, second)))
    rng = np.random.default_rng(0)
    by_nodes = []
    for _ in range(draws):
        both = [graph.swapped(rng.random(graph.nodes) < 0.5) for graph in graphs]
        by_nodes.append(
            statistic(
                np.stack([a[:seeds] for a, _ in both]), np.stack([b[:seeds] for _, b in both])
            )
        )
    p_seeds, q_seeds = p_values(seen, by_seeds, exhaustive=True)
    p_nodes, q_nodes = p_values(seen, by_nodes)
    return PairedTest(seen, p_seeds, p_nodes, q_seeds, q_nodes)


def mean_log_bias(nodes: NodeLosses) -> float:
    """Return the log of the geometric mean of the biases over the seeds."""
    losses = _LossesByDegree(nodes.loss, nodes.loss, nodes.degree)
    return float(losses.log_bias(losses.sums[0]).mean())


class _LossesByDegree:
    """The losses of two methods on one graph, (seeds, nodes) each, summed by degree."""

    def __init__(self, first: Floats, second: Floats, degree: np.ndarray) -> None:
        order = np.argsort(degree, kind="stable")
        first, second = first[:, order], second[:, order]
        _, self.starts, self.counts = np.unique(
            degree[order], return_index=True, return_counts=True
        )
        self.nodes = len(degree)
        self.sums = [np.add.reduceat(each, self.starts, 1) for each in (first, second)]
        self.difference = second - first

    def log_bias(self, sums: Floats) -> Floats:
        """Return the log of the sample variance over degrees of the mean losses, by seed."""
        if len(self.counts) < 2:
            return np.zeros(len(sums))
        variance = (sums / self.counts).var(1, ddof=1)
        logs: Floats = np.log(np.maximum(variance, 1e-300))
        return logs

    def swapped(self, at: np.ndarray) -> tuple[Floats, Floats]:
        """Return both log biases with the losses of some nodes swapped."""
        moved = np.add.reduceat(self.difference * at, self.starts, 1)
        return self.log_bias(self.sums[0] + moved), self.log_bias(self.sums[1] - moved)


@dataclass(frozen=True)
class AccuracyDifference:
    """A difference of accuracies in points, with a 95 % interval over seeds and nodes."""

    points: float
    low: float
    high: float

    def not_below(self, margin: float) -> str:
        """Return whether the first method is worse by at most ``margin`` points."""
        if self.low > -margin:
            return HOLDS
        return FAILS if self.high < -margin else UNCLEAR


def accuracy_difference(first: NodeLosses, second: NodeLosses) -> AccuracyDifference:
    """Subtract the second method's accuracy from the first's, paired by seed and by node.

    The variance of the mean is that of the seeds' means plus that of the nodes' means.
    """
    seeds = min(len(first.correct), len(second.correct))
    gains = 100 * (first.correct[:seeds].astype(float) - second.correct[:seeds])
    error = math.sqrt(sum(_variance_of_mean(gains.mean(axis)) for axis in (0, 1)))
    points = float(gains.mean())
    return AccuracyDifference(points, points - 1.96 * error, points + 1.96 * error)


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else 0.0
