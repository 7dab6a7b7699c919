"""The bias net of noise: the variance between degrees less what chance alone gives.

The variance net of noise is that of a one-way random
effects model: the loss of node u of degree k is m + a_k + e_u, with a_k of variance τ² between
degrees and e_u of variance σ²_k within. The mean of n_k such losses has the variance
τ² + σ²_k / n_k, so

    E[bias] = τ² + (1/K) Σ_k σ²_k / n_k,

and the bias less an unbiased estimate of that noise is an unbiased estimate of τ² (Hedges 1983),
which may be negative. Degrees of a single node have no variance of their own, and low degrees
usually have more varied losses than high ones, so

    σ²_k = s_r f_k,    f_k = (1 + k)^β:

over the whole range the variance follows a power of the degree, and departs from it alike for a
run r of neighboring degrees that have ``_POOLED`` degrees of freedom together. β maximizes the
gamma likelihood of the groups' own variances; given f, each s_r and the noise are unbiased.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .findings import NetVariance
from .group_statistics import GroupedScores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_POOLED = 40


def net_variance(grouped: GroupedScores, ordered: bool = True) -> NetVariance:
    """Estimate τ²; runs of neighbors pool their variance, or all groups if not ``ordered``."""
    count = grouped.count
    single = int((count == 1).sum())
    if len(count) < 2 or single == len(count):  # nothing tells noise from effect
        return NetVariance(math.nan, math.nan, math.nan, len(count), single)
    noise = float((_within_variance(grouped, ordered) / count).mean())
    unbiased = grouped.bias - noise
    return NetVariance(max(unbiased, 0.0), unbiased, noise, len(count), single)


def _within_variance(grouped: GroupedScores, ordered: bool) -> Floats:
    """σ²_k of every group, also of those with a single node."""
    freedom = grouped.count - 1
    deviation = grouped.loss - np.repeat(grouped.mean_loss, grouped.count)
    squares = grouped.sum(deviation**2)
    member, x = np.zeros(len(freedom), np.int64), np.zeros(len(freedom))
    if ordered:
        member, x = _runs(freedom), np.log1p(grouped.value - min(float(grouped.value.min()), 0.0))
        x = x - freedom @ x / freedom.sum()  # so that the gamma likelihood needs no level
    beta = 0.0
    for _ in range(30):
        step = _newton_step(squares * np.exp(-beta * x), x)
        beta += step
        if abs(step) < 1e-9:
            break
    shape: Floats = np.exp(beta * x)
    total = np.bincount(member, freedom)
    within: Floats = shape * (np.bincount(member, squares / shape) / total)[member]
    return within


def _newton_step(squares: Floats, x: Floats) -> float:
    """Newton's step for β from the squares within groups, already divided by the present f.

    With the levels solved for, the likelihood is that of log Σ SS e^(-βx), which is convex.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = squares / squares.sum()
        first, second = share @ x, share @ x**2
        step = first / (second - first**2)
    return float(np.clip(step, -0.5, 0.5)) if np.isfinite(step) else 0.0


def _runs(freedom: Ints) -> Ints:
    """Neighbors joined until each run has ``_POOLED`` degrees of freedom.

    From the greatest value down, where the single nodes are; the remainder joins the last run.
    """
    left = np.cumsum(freedom)
    member, run, had = np.empty(len(freedom), np.int64), 0, 0
    for k in range(len(freedom) - 1, -1, -1):
        if had >= _POOLED and left[k] >= _POOLED:
            run, had = run + 1, 0
        member[k] = run
        had += int(freedom[k])
    return run - member
