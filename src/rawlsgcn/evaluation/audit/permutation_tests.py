"""Permutation tests of 'degree does not matter' and of 'neither model is fairer than the other'."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .findings import PairedBiasTest, PermutationTest
from .group_statistics import GroupedScores
from .resampling import in_blocks

Floats = npt.NDArray[np.float64]
_HISTOGRAM_BINS = 30
_MIDDLE = 0.95
"""The share of the shuffled biases between ``low`` and ``high``."""
_ROUNDING = 1e-9
"""What differs by rounding only is the same."""


def p_values(
    seen: float,
    permuted: npt.ArrayLike,
    *,
    exhaustive: bool = False,
    tolerance: float | None = None,
) -> tuple[float, float]:
    """Compute the p-value for a statistic as low as ``seen``, and that for one as high.

    With B random permutations p = (1 + #{as extreme as seen}) / (1 + B), which is never 0 and
    rejects a true null hypothesis at α in at most α of cases (Phipson and Smyth 2010).

    If the permutations are ``exhaustive``, the data itself is among them and nothing is added.
    Differences up to the ``tolerance`` count as equal; by default 1e-9, or 1e-9 of ``seen``.
    """
    values = np.asarray(permuted, dtype=np.float64)
    slack = _ROUNDING * max(1.0, abs(seen)) if tolerance is None else tolerance
    added = 0 if exhaustive else 1
    lower, higher = (
        (added + int(np.count_nonzero(extreme))) / (added + values.size)
        for extreme in (values <= seen + slack, values >= seen - slack)
    )
    return lower, higher


def shuffled_bias(grouped: GroupedScores, draws: int, seed: int) -> PermutationTest:
    """Compare the paper's bias with that of degrees shuffled among the nodes.

    Where shuffling changes nothing there are no draws and no p-value.
    """
    seen = grouped.bias
    nothing = PermutationTest(seen, math.nan, math.nan, math.nan, math.nan, 0, [], [])
    if not math.isfinite(seen):
        return nothing
    # Around the mean, so that single precision is enough even for losses far from zero.
    centered = grouped.loss - grouped.loss.mean()
    large = len(centered) > 100_000
    losses = centered.astype(np.float32 if large else np.float64)
    rounding = 1e-5 if large else _ROUNDING

    def draw(rng: np.random.Generator, size: int) -> Floats:
        own = np.tile(losses, (size, 1))
        rng.permuted(own, axis=1, out=own)
        return _biases(np.add.reduceat(own, grouped.start, axis=1), grouped)

    biases = in_blocks(draw, draws, len(losses), (seed, 2))
    # Where every node is a group of its own, or all losses are the same, the shuffled biases differ
    # by rounding only and mean nothing.
    smallest = (10 * np.finfo(float).eps * float(np.abs(grouped.loss).max())) ** 2
    if np.ptp(biases) <= rounding * biases.max() + smallest:
        return nothing
    _, p = p_values(seen, biases, tolerance=rounding * seen)
    low, high = np.quantile(biases, [(1 - _MIDDLE) / 2, (1 + _MIDDLE) / 2]).tolist()
    counts, edges = np.histogram(biases, _HISTOGRAM_BINS)
    mean = float(biases.mean())
    return PermutationTest(seen, mean, low, high, p, draws, edges.tolist(), counts.tolist())


def swapped_bias(
    first: GroupedScores, second: GroupedScores, draws: int, seed: int
) -> PairedBiasTest:
    """Test whether one model's bias is lower, by swapping the two models' losses at random nodes.

    The statistic is the ratio of the biases. Under the null hypothesis the two are the same model
    up to chance, so that every node's two losses may be swapped.
    """
    biases = first.bias, second.bias
    if not all(map(math.isfinite, biases)):
        return PairedBiasTest(*biases, math.nan, math.nan, math.nan, 0)
    away = second.loss - first.loss
    sums = first.sum(first.loss), second.sum(second.loss)
    seen = math.log(max(biases[0], 1e-300)) - math.log(max(biases[1], 1e-300))

    def draw(rng: np.random.Generator, size: int) -> Floats:
        bits = np.frombuffer(rng.bytes(size * len(away) // 8 + 1), np.uint8)
        swapped = np.unpackbits(bits, count=size * len(away)).reshape(size, -1)
        moved = np.add.reduceat(away * swapped, first.start, axis=1)
        pair = (_biases(each, first) for each in (sums[0] + moved, sums[1] - moved))
        lower, upper = (np.log(np.maximum(each, 1e-300)) for each in pair)
        difference: Floats = lower - upper
        return difference

    ratios = in_blocks(draw, draws, len(away), (seed, 3))
    lower, higher = p_values(seen, ratios)
    p = min(1.0, 2 * min(lower, higher))
    return PairedBiasTest(*biases, math.exp(seen), lower, higher, draws, p)


def _biases(sums: npt.NDArray[np.floating[Any]], grouped: GroupedScores) -> Floats:
    """The bias of every row of group sums."""
    biases: Floats = (sums / grouped.count).var(1, ddof=1)
    return biases
