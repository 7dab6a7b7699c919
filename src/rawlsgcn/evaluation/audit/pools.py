"""The variance of single losses within each degree, also where a degree has one node only.

Low degrees usually have larger and more varied losses than high ones, and degrees of a single node
tell nothing of their variance. So

    σ²_k = s_r f_k,    f_k = (1 + k)^β:

over the whole range the variance follows a power of the degree, and where it departs from that it
does so alike for a run r of neighbouring degrees, which have ``_POOLED`` degrees of freedom
together. β maximises the gamma likelihood of the groups' own variances; given f, each s_r and the
noise are unbiased. What is drawn for a node is σ_k ε, with ε from the deviations of all degrees.
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
    """Runs of groups that share s. ``member`` (groups,) says which run; ``shape`` is f and ``x``
    the centred log(1 + k) of which it is the power; ``variance`` (s) and ``freedom`` are the runs';
    ``epsilon`` are the deviations to draw from, of mean 0 and variance 1, and ``kurtosis`` (in
    excess) is theirs."""

    member: Ints
    shape: Floats
    x: Floats
    variance: Floats
    freedom: Floats
    epsilon: Floats
    kurtosis: float

    @property
    def group_variance(self) -> Floats:
        """σ²_k of every group."""
        return self.shape * self.variance[self.member]

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
        squares = strata.sum(deviation**2)
        x = _logarithm(strata, ordered)
        beta = 0.0
        for _ in range(30):
            step = float(steps(squares[None] * np.exp(-beta * x), x)[0])
            beta += step
            if abs(step) < 1e-9:
                break
        shape: Floats = np.exp(beta * x)
        variance = np.bincount(member, squares / shape, runs) / total
        deviation = deviation / np.sqrt(np.repeat(shape, strata.count))
        epsilon = _deviations(strata, deviation, ordered)
        kurtosis = float((epsilon**4).mean()) - 3
        return cls(member, shape, x, variance, total, epsilon, kurtosis)


def _logarithm(strata: Strata, ordered: bool) -> Floats:
    """log(1 + k), centred so that the gamma likelihood needs no level; 0 without an order."""
    if not ordered:
        return np.zeros(len(strata.count))
    x = np.log1p(strata.value - min(float(strata.value.min()), 0.0))
    freedom = strata.count - 1
    centred: Floats = x - freedom @ x / freedom.sum()
    return centred


def steps(squares: Floats, x: Floats) -> Floats:
    """Newton's step for β of every row of squares within groups, already over the present f.

    With the levels solved for, the likelihood is that of log Σ SS e^(-βx), which is convex.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        part = squares / squares.sum(1, keepdims=True)
        first, second = part @ x, part @ x**2
        step = first / (second - first**2)
    return np.clip(np.where(np.isfinite(step), step, 0.0), -0.5, 0.5)


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
