"""The variance of single losses within each degree, also where a degree has one node only.

Low degrees usually have larger and more varied losses than high ones, and degrees of a single node
tell nothing of their variance. So σ²_k is taken to be the same for a run of neighbouring degrees
that have ``_POOLED`` degrees of freedom together: short enough to follow the degrees, long enough
to be estimated. What is drawn for a node is σ_k ε, with ε from the deviations of all degrees,
each divided by its own run's σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .strata import Strata

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_POOLED = 40
_LONG = 250
_TELLING = 20


@dataclass(frozen=True)
class Pools:
    """Runs of groups that share σ². ``member`` (groups,) says which run; ``variance`` and
    ``freedom`` are the runs'; ``epsilon`` are the deviations to draw from, of mean 0 and
    variance 1, and ``kurtosis`` (in excess) is theirs."""

    member: Ints
    variance: Floats
    freedom: Floats
    epsilon: Floats
    kurtosis: float

    @property
    def group_variance(self) -> Floats:
        """σ²_k of every group."""
        return self.variance[self.member]

    @classmethod
    def of(cls, strata: Strata, ordered: bool) -> Pools | None:
        """None where every group has a single node: nothing tells noise from effect then.

        Groups without an order share one variance.
        """
        freedom = strata.count - 1
        if not freedom.any():
            return None
        member = _runs(freedom, _POOLED) if ordered else np.zeros(len(freedom), np.int64)
        runs = int(member.max()) + 1
        deviation = strata.loss - np.repeat(strata.mean_loss, strata.count)
        total = np.bincount(member, freedom, runs).astype(np.float64)
        variance = np.bincount(member, strata.sum(deviation**2), runs) / total
        epsilon = _deviations(strata, deviation, ordered)
        return cls(member, variance, total, epsilon, float((epsilon**4).mean()) - 3)


def _deviations(strata: Strata, deviation: Floats, ordered: bool) -> Floats:
    """What ε is drawn from: deviations of mean 0 and variance 1, with the losses' own tails.

    A deviation over the σ of few others, or from the mean of few, is tamer than the loss was. So
    only groups of ``_TELLING`` nodes and more give any where these are enough, and the σ that
    they are divided by is that of long runs.
    """
    freedom = strata.count - 1
    member = _runs(freedom, _LONG) if ordered else np.zeros(len(freedom), np.int64)
    variance = np.bincount(member, strata.sum(deviation**2)) / np.bincount(member, freedom)
    telling = strata.count >= _TELLING
    if strata.count[telling].sum() < 10 * _TELLING:
        telling = strata.count > 1
    # A deviation from a mean of n has (n - 1)/n of the variance.
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(strata.count / freedom / variance[member])
    scale = np.where(telling & (variance[member] > 0), scale, np.nan)
    epsilon = deviation * np.repeat(scale, strata.count)
    epsilon = epsilon[np.isfinite(epsilon)]
    if not len(epsilon):  # all losses of a degree are the same: there is no noise at all
        return np.zeros(1)
    epsilon = epsilon - epsilon.mean()
    scaled: Floats = epsilon / max(float(epsilon.std()), 1e-300)
    return scaled


def _runs(freedom: Ints, pooled: int) -> Ints:
    """Neighbours joined until each run has ``pooled`` degrees of freedom.

    From the greatest value down, where the single nodes are; what is left over joins the last.
    """
    left = np.cumsum(freedom)
    member, run, had = np.empty(len(freedom), np.int64), 0, 0
    for k in range(len(freedom) - 1, -1, -1):
        if had >= pooled and left[k] >= pooled:
            run, had = run + 1, 0
        member[k] = run
        had += int(freedom[k])
    return run - member
