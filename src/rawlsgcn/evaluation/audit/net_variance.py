"""What is left of the paper's bias once chance is taken out: a one-way random effects model.

The loss of node u of degree k is m + a_k + e_u, with a_k of variance τ² between degrees and e_u
of variance σ²_k within. The mean of n_k such losses has the variance τ² + σ²_k / n_k, so

    E[bias] = τ² + (1/K) Σ_k σ²_k / n_k,

and bias less an unbiased estimate of that noise is an unbiased estimate of τ² (Hedges 1983), which
may come out negative. Degrees of a single node have no variance of their own, so that of others
must do: see :mod:`.pools`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .parts import NetVariance
from .pools import Pools, steps
from .strata import Strata
from .threads import in_blocks

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_DRAWN_SINGLY = 30
"""Means of more nodes than this are drawn from the normal distribution, others node by node."""
_NUMBERS = 1 << 20
_CAUTION = 0.6
"""The draws take the noise of the nodes seen for the true one and so vary too little: the middle
95 % of them covers some 92 to 94 % of the time. With this share of the tails it is 95 %, found by
simulation (tests/evaluation/audit/test_coverage.py)."""


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
        nan = math.nan
        return NetVariance(nan, nan, nan, nan, nan, len(count), single)
    noises = pools.group_variance / count
    noise = float(noises.mean())
    unbiased = strata.bias - noise
    low, high = _interval(unbiased, noises, _drawn(strata, pools, draws, seed), level)
    return NetVariance(max(unbiased, 0.0), unbiased, low, high, noise, len(count), single)


@dataclass(frozen=True)
class _Drawn:
    """For every draw, the estimate T(τ) = a τ² + 2 c τ + d as a function of the true τ, and the
    sums over the groups of v_k = σ²_k / n_k and of its square, as estimated in that draw."""

    a: Floats
    c: Floats
    d: Floats
    noise: Floats
    square: Floats
    groups: int

    def quantile(self, tau: float, share: float) -> float:
        """Of (T - τ²) / scale, which hangs on τ and on the true noise but little."""
        estimate = self.a * tau**2 + 2 * self.c * tau + self.d
        scale = _scale(tau, self.noise, self.square, self.groups)
        return float(np.quantile((estimate - tau**2) / scale, share))


def _scale(tau: float, noise: Any, square: Any, groups: int) -> Any:
    """The standard deviation of the variance of normal means: 2 Σ (τ² + v_k)² / (K - 1)²."""
    total = groups * tau**4 + 2 * tau**2 * noise + square
    return np.sqrt(2 * np.maximum(total, 1e-300)) / (groups - 1)


def _drawn(strata: Strata, pools: Pools, draws: int, seed: int) -> _Drawn:
    count, groups = strata.count, len(strata.count)
    singly = count <= _DRAWN_SINGLY
    small, large = np.flatnonzero(singly), np.flatnonzero(~singly)
    start = np.cumsum(count[small]) - count[small]
    nodes = int(count[small].sum())
    sigma = np.sqrt(pools.group_variance)
    freedom = count[large] - 1.0
    # Var(s²) = σ⁴ (2 / (n - 1) + κ / n).
    wobble = np.sqrt(freedom * (2 + max(pools.kurtosis, -1.9)))
    first = np.flatnonzero(np.diff(pools.member, prepend=-1))

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        mean, inside = np.empty((2, rows, groups))
        if len(small):
            away = pools.epsilon[rng.integers(0, len(pools.epsilon), (rows, nodes))]
            total, square = (np.add.reduceat(each, start, axis=1) for each in (away, away**2))
            mean[:, small] = sigma[small] * total / count[small]
            inside[:, small] = sigma[small] ** 2 * (square - total**2 / count[small])
        if len(large):
            shape = (rows, len(large))
            mean[:, large] = rng.standard_normal(shape) * sigma[large] / np.sqrt(count[large])
            squares = freedom + wobble * rng.standard_normal(shape)
            inside[:, large] = sigma[large] ** 2 * squares
        effect = rng.standard_normal((rows, groups))
        effect -= effect.mean(1, keepdims=True)
        mean -= mean.mean(1, keepdims=True)
        a = (effect**2).sum(1) / (groups - 1)
        c = (effect * mean).sum(1) / (groups - 1)
        v = _noises(inside, pools, first) / count
        d = (mean**2).sum(1) / (groups - 1) - v.mean(1)
        return np.stack([a, c, d, v.sum(1), (v**2).sum(1)])

    numbers = nodes + 3 * groups
    rows = min(draws, max(1, _NUMBERS // numbers))
    parts = in_blocks(draw, draws, numbers, (seed, 4), rows)
    a, c, d, noise, square = np.concatenate(parts, 1)
    return _Drawn(a, c, d, noise, square, groups)


def _noises(inside: Floats, pools: Pools, first: Ints) -> Floats:
    """σ²_k as it would be estimated from each row of squares within the groups.

    β moves by one of Newton's steps. The groups of a run lie side by side, from ``first`` on.
    """
    own = inside / pools.shape
    moved = np.exp(steps(own, pools.x)[:, None] * pools.x)
    variance = np.add.reduceat(own / moved, first, axis=1) / pools.freedom
    estimated: Floats = variance[:, pools.member] * moved * pools.shape
    return estimated


def _interval(seen: float, v: Floats, drawn: _Drawn, level: float) -> tuple[float, float]:
    """The least and the greatest τ² that the estimate does not contradict.

    Below zero there is no τ; the distribution at 0 is moved along instead.
    """
    noise, square = float(v.sum()), float((v**2).sum())

    def over(tau: float, share: float) -> float:
        """How far the estimate is over the quantile at τ; it falls with τ."""
        scale = float(_scale(tau, noise, square, len(v)))
        return seen - tau**2 - drawn.quantile(tau, share) * scale

    def end(share: float) -> float:
        at_zero = over(0.0, share)
        return at_zero if at_zero <= 0 else _root(lambda tau: over(tau, share), math.sqrt(at_zero))

    outside = _CAUTION * (1 - level) / 2
    return end(1 - outside), end(outside)


def _root(function: Callable[[float], float], guess: float) -> float:
    """The square of the τ at which a falling function crosses zero."""
    from scipy.optimize import brentq

    high = 2 * guess
    for _ in range(60):
        if function(high) <= 0:
            return float(brentq(function, 0.0, high, rtol=1e-6)) ** 2
        high *= 2
    return math.nan
