"""PermutationTest tests: 'degree does not matter', and 'this model is not fairer than that one'."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .findings import PairedBiasTest, PermutationTest
from .group_statistics import GroupedScores
from .resampling import in_blocks

Floats = npt.NDArray[np.float64]
_BINS = 30
_NUMBERS = 1 << 20
_SLACK = 1e-9
"""What differs by rounding only is the same."""


def shuffled_bias(
    grouped: GroupedScores, draws: int, seed: int, level: float = 0.95
) -> PermutationTest:
    """The paper's bias with the degrees shuffled among the nodes, against the one seen.

    p = (1 + #{shuffled >= seen}) / (1 + draws), which never is 0 and rejects a true null at α in
    at most α of cases (Phipson and Smyth 2010). Where shuffling changes nothing there are no draws
    and no p.
    """
    seen = grouped.bias
    nan = math.nan
    if not math.isfinite(seen):
        return PermutationTest(seen, nan, nan, nan, nan, 0, [], [])
    # Around the mean, so that single precision is enough even for losses far from zero.
    centred = grouped.loss - grouped.loss.mean()
    large = len(centred) > 100_000
    losses = centred.astype(np.float32 if large else np.float64)

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        own = np.tile(losses, (rows, 1))
        rng.permuted(own, axis=1, out=own)
        return _biases(np.add.reduceat(own, grouped.start, axis=1), grouped)

    rows = _rows(len(losses))
    biases = np.concatenate(in_blocks(draw, draws, len(losses), (seed, 2), rows))
    # Where every node is a group of its own, or all losses are the same, the shuffled biases differ
    # by rounding only and tell nothing.
    rounding = (10 * np.finfo(float).eps * float(np.abs(grouped.loss).max())) ** 2
    if np.ptp(biases) <= (1e-5 if large else _SLACK) * biases.max() + rounding:
        return PermutationTest(seen, nan, nan, nan, nan, 0, [], [])
    reached = int((biases >= seen * (1 - (1e-5 if large else _SLACK))).sum())
    low, high = np.quantile(biases, [(1 - level) / 2, (1 + level) / 2])
    counts, edges = np.histogram(biases, _BINS)
    return PermutationTest(
        seen,
        float(biases.mean()),
        float(low),
        float(high),
        (1 + reached) / (1 + draws),
        draws,
        edges.tolist(),
        counts.tolist(),
    )


def swapped_bias(
    first: GroupedScores, second: GroupedScores, draws: int, seed: int
) -> PairedBiasTest:
    """Whether one model's bias is lower, the two models changing places at random nodes.

    Both must hold the same nodes. The statistic is the ratio of the biases. Under the null the
    two are the same model up to chance, so that every node's two losses may be swapped.
    """
    biases = first.bias, second.bias
    if not all(map(math.isfinite, biases)):
        return PairedBiasTest(*biases, math.nan, math.nan, math.nan, 0)
    away = second.loss - first.loss
    sums = first.sum(first.loss), second.sum(second.loss)
    seen = math.log(max(biases[0], 1e-300)) - math.log(max(biases[1], 1e-300))

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        bits = np.frombuffer(rng.bytes(rows * len(away) // 8 + 1), np.uint8)
        swapped = np.unpackbits(bits, count=rows * len(away)).reshape(rows, -1)
        moved = np.add.reduceat(away * swapped, first.start, axis=1)
        pair = (_biases(each, first) for each in (sums[0] + moved, sums[1] - moved))
        lower, upper = (np.log(np.maximum(each, 1e-300)) for each in pair)
        difference: Floats = lower - upper
        return difference

    rows = _rows(len(away))
    ratios = np.concatenate(in_blocks(draw, draws, len(away), (seed, 3), rows))
    slack = _SLACK * max(1.0, abs(seen))
    lower = (1 + int((ratios <= seen + slack).sum())) / (1 + draws)
    higher = (1 + int((ratios >= seen - slack).sum())) / (1 + draws)
    p = min(1.0, 2 * min(lower, higher))
    return PairedBiasTest(*biases, math.exp(seen), lower, higher, draws, p)


def _biases(sums: npt.NDArray[np.floating[Any]], grouped: GroupedScores) -> Floats:
    """The bias of every row of group sums."""
    biases: Floats = (sums / grouped.count).var(1, ddof=1)
    return biases


def _rows(nodes: int) -> int:
    """How many draws are made at once."""
    return max(1, _NUMBERS // nodes)
