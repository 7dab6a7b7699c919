"""Permutation tests: 'degree does not matter', and 'this model is not fairer than that one'."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .parts import BiasTest, Permutation
from .strata import Strata
from .threads import in_blocks

Floats = npt.NDArray[np.float64]
_BINS = 30
_ROWS = 20
_SLACK = 1e-9
"""What differs by rounding only is the same."""


def shuffled_bias(strata: Strata, draws: int, seed: int, level: float = 0.95) -> Permutation:
    """The paper's bias with the degrees shuffled among the nodes, against the one seen.

    p = (1 + #{shuffled >= seen}) / (1 + draws), which never is 0 and rejects a true null at α in
    at most α of cases (Phipson and Smyth 2010).
    """
    seen = strata.bias
    if not math.isfinite(seen):
        nan = math.nan
        return Permutation(seen, nan, nan, nan, nan, 0, [], [])
    # Around the mean, so that single precision is enough even for losses far from zero.
    centred = strata.loss - strata.loss.mean()
    large = len(centred) > 100_000
    losses = centred.astype(np.float32 if large else np.float64)

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        own, biases = losses.copy(), np.empty(rows)
        for row in range(rows):
            rng.shuffle(own)
            biases[row] = (strata.sum(own) / strata.count).var(ddof=1)
        return biases

    biases = np.concatenate(in_blocks(draw, draws, len(losses), (seed, 2), _ROWS))
    reached = int((biases >= seen * (1 - (1e-5 if large else _SLACK))).sum())
    low, high = np.quantile(biases, [(1 - level) / 2, (1 + level) / 2])
    counts, edges = np.histogram(biases, _BINS)
    return Permutation(
        seen,
        float(biases.mean()),
        float(low),
        float(high),
        (1 + reached) / (1 + draws),
        draws,
        edges.tolist(),
        counts.tolist(),
    )


def swapped_bias(first: Strata, second: Strata, draws: int, seed: int) -> BiasTest:
    """Whether one model's bias is lower, the two models changing places at random nodes.

    Both must hold the same nodes. The statistic is the ratio of the biases. Under the null the
    two are the same model up to chance, so that every node's two losses may be swapped.
    """
    biases = first.bias, second.bias
    if not all(map(math.isfinite, biases)):
        return BiasTest(*biases, math.nan, math.nan, math.nan, 0)
    away = second.loss - first.loss
    sums = first.sum(first.loss), second.sum(second.loss)
    seen = _log_ratio(*biases)

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        ratios = np.empty(rows)
        for row in range(rows):
            bits = np.unpackbits(np.frombuffer(rng.bytes(len(away) // 8 + 1), np.uint8))
            moved = first.sum(away * bits[: len(away)])
            ratios[row] = _log_ratio(
                *(
                    float((each / first.count).var(ddof=1))
                    for each in (sums[0] + moved, sums[1] - moved)
                )
            )
        return ratios

    ratios = np.concatenate(in_blocks(draw, draws, len(away), (seed, 3), _ROWS))
    slack = _SLACK * max(1.0, abs(seen))
    return BiasTest(
        *biases,
        math.exp(seen),
        (1 + int((ratios <= seen + slack).sum())) / (1 + draws),
        (1 + int((ratios >= seen - slack).sum())) / (1 + draws),
        draws,
    )


def _log_ratio(first: float, second: float) -> float:
    return math.log(max(first, 1e-300)) - math.log(max(second, 1e-300))
