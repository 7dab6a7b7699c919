"""What is left of the paper's bias once chance is taken out: a one-way random effects model.

The loss of node u of degree k is m + a_k + e_u, with a_k of variance τ² between degrees and e_u
of variance σ²_k within. The mean of n_k such losses has the variance τ² + σ²_k / n_k, so

    E[bias] = τ² + (1/K) Σ_k σ²_k / n_k,

and bias less an unbiased estimate of that noise is an unbiased estimate of τ² (Hedges 1983), which
may come out negative. Degrees of a single node have no variance of their own: σ²_k is taken to be
the same for neighbouring degrees, pooled until there are ``_POOLED`` degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .parts import NetVariance
from .strata import Strata
from .threads import in_blocks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_POOLED = 100
_DRAWN_SINGLY = 30
"""Means of more nodes than this are drawn from the normal distribution, others node by node."""
_NUMBERS = 1 << 20


def net_variance(
    strata: Strata, draws: int, seed: int, level: float = 0.95, ordered: bool = True
) -> NetVariance:
    """Estimate τ² and its interval; ``ordered`` groups (degrees) pool with their neighbours.

    The interval holds every τ² under which the estimate seen is not extreme (Jackson 2013, the
    generalised Q-profile, with the distribution drawn instead of assumed): a_k is normal, e_u are
    the losses' own deviations, and the noise is estimated anew in every draw.
    """
    count = strata.count
    single = int((count == 1).sum())
    pools = Pools.of(strata, ordered)
    if len(count) < 2 or pools is None:
        return NetVariance(*[math.nan] * 5, groups=len(count), single=single)
    noise = float((pools.variance[pools.member] / count).mean())
    unbiased = strata.bias - noise
    low, high = _interval(unbiased, _drawn(strata, pools, draws, seed), level)
    return NetVariance(max(unbiased, 0.0), unbiased, low, high, noise, len(count), single)


@dataclass(frozen=True)
class Pools:
    """Runs of groups that share σ². ``member`` (groups,) says which run; ``variance``,
    ``freedom`` and ``kurtosis`` (in excess) are the runs'; ``away`` holds each run's deviations
    at ``start``, ``size`` of them, of mean 0 and of that variance."""

    member: Ints
    variance: Floats
    freedom: Floats
    kurtosis: Floats
    away: Floats
    start: Ints
    size: Ints

    @classmethod
    def of(cls, strata: Strata, ordered: bool) -> Pools | None:
        """None where every group has a single node: nothing tells noise from effect then."""
        freedom = strata.count - 1
        if not freedom.any():
            return None
        member = _runs(freedom) if ordered else np.zeros(len(freedom), np.int64)
        deviation = strata.loss - np.repeat(strata.mean_loss, strata.count)
        own = np.repeat(member, strata.count)
        runs = int(member[-1]) + 1
        total = np.bincount(member, freedom, runs)
        variance = np.bincount(own, deviation**2, runs) / total
        # A deviation from a mean of n has (n - 1)/n of the variance; single nodes have none.
        shared = np.repeat(strata.count > 1, strata.count)
        n = np.repeat(strata.count, strata.count)[shared]
        away, own = deviation[shared] * np.sqrt(n / (n - 1)), own[shared]
        size = np.bincount(own, minlength=runs)
        away -= (np.bincount(own, away, runs) / size)[own]
        second = np.bincount(own, away**2, runs) / size
        with np.errstate(divide="ignore", invalid="ignore"):
            away *= np.where(second > 0, np.sqrt(variance / second), 0)[own]
            kurtosis = np.bincount(own, away**4, runs) / size / variance**2 - 3
        kurtosis = np.where(variance > 0, kurtosis, 0)
        return cls(member, variance, total, kurtosis, away, np.cumsum(size) - size, size)


def _runs(freedom: Ints) -> Ints:
    """Neighbours joined until each run has ``_POOLED`` degrees of freedom; the rest joins the last.

    From the greatest value down, where the single nodes are: no run is left without freedom.
    """
    member, run, had = np.empty(len(freedom), np.int64), 0, 0
    for k in range(len(freedom) - 1, -1, -1):
        if had >= _POOLED and freedom[: k + 1].sum() >= _POOLED:
            run, had = run + 1, 0
        member[k] = run
        had += int(freedom[k])
    return run - member


@dataclass(frozen=True)
class _Drawn:
    """For every draw, T(τ) = a τ² + 2 c τ + d: the estimate as a function of the true τ."""

    a: Floats
    c: Floats
    d: Floats

    def quantile(self, tau: float, share: float) -> float:
        return float(np.quantile(self.a * tau**2 + 2 * self.c * tau + self.d, share))


def _drawn(strata: Strata, pools: Pools, draws: int, seed: int) -> _Drawn:
    count, groups = strata.count, len(strata.count)
    singly = count <= _DRAWN_SINGLY
    small, large = np.flatnonzero(singly), np.flatnonzero(~singly)
    start = np.cumsum(count[small]) - count[small]
    of_node = np.repeat(pools.member[small], count[small])
    offset, size = pools.start[of_node], pools.size[of_node]
    sigma2 = pools.variance[pools.member]
    freedom = count[large] - 1.0
    # Var(s²) = σ⁴ (2 / (n - 1) + κ / n).
    wobble = np.sqrt(freedom * (2 + pools.kurtosis[pools.member[large]].clip(-1.9)))
    runs = len(pools.variance)
    per_run = np.bincount(pools.member, 1 / count, runs) / groups / pools.freedom
    to_noise = per_run[pools.member]

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        mean, inside = np.empty((2, rows, groups))
        if len(small):
            at = (rng.random((rows, len(of_node))) * size).astype(np.int64) + offset
            away = pools.away[at]
            total = np.add.reduceat(away, start, axis=1)
            mean[:, small] = total / count[small]
            inside[:, small] = np.add.reduceat(away**2, start, axis=1) - total * mean[:, small]
        if len(large):
            shape = (rows, len(large))
            mean[:, large] = rng.standard_normal(shape) * np.sqrt(sigma2[large] / count[large])
            squares = freedom + wobble * rng.standard_normal(shape)
            inside[:, large] = sigma2[large] * squares
        effect = rng.standard_normal((rows, groups))
        effect -= effect.mean(1, keepdims=True)
        mean -= mean.mean(1, keepdims=True)
        a = (effect**2).sum(1) / (groups - 1)
        c = (effect * mean).sum(1) / (groups - 1)
        d = (mean**2).sum(1) / (groups - 1) - inside @ to_noise
        return np.stack([a, c, d])

    numbers = len(of_node) + 3 * groups
    rows = min(draws, max(1, _NUMBERS // numbers))
    parts = in_blocks(draw, draws, numbers, (seed, 4), rows)
    return _Drawn(*np.concatenate(parts, 1))


def _interval(seen: float, drawn: _Drawn, level: float) -> tuple[float, float]:
    """The least and the greatest τ² that the estimate does not contradict.

    Below zero there is no τ; the distribution at 0 is moved along instead.
    """
    low_share, high_share = (1 - level) / 2, (1 + level) / 2

    def end(share: float) -> float:
        at_zero = seen - drawn.quantile(0.0, share)
        if at_zero <= 0:
            return at_zero
        return _root(lambda tau: drawn.quantile(tau, share) - seen, math.sqrt(at_zero))

    return end(high_share), end(low_share)


def _root(function: Callable[[float], float], guess: float) -> float:
    """The square of the τ at which a rising function crosses zero."""
    from scipy.optimize import brentq

    high = 2 * guess
    while function(high) < 0:
        high *= 2
    return float(brentq(function, 0.0, high, rtol=1e-6)) ** 2
