"""Random draws: the Poisson bootstrap of nodes, and permutation tests.

Drawing n nodes with replacement gives each node a number of appearances that is binomial and, but
for a total held at n, Poisson(1) and independent. So every node has a Poisson(1) weight w
(the Poisson bootstrap; Hanley and MacGibbon, 2006), and of each group k only

    N_k = Σ w,    S_k = Σ w x,    Q_k = Σ w x²,    R_k = Σ w r

are kept (x the loss, r whether right): the intervals follow from them. Given N_k, the draws
within a group are those of the usual bootstrap with N_k draws.

The permutation tests are of 'degree does not matter' and 'neither model is fairer than the other'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from .findings import PairedBiasTest, PermutationTest
from .group_statistics import GroupedScores, GroupSums

Floats = npt.NDArray[np.float64]
Answer = TypeVar("Answer")
_WORTH_A_THREAD = 1 << 24
"""Random numbers under which starting threads costs more than it saves."""
_NUMBERS = 1 << 20
"""Random numbers made at once by a thread: 4 MB in single precision."""
_LARGE = 512
"""From this size on a group is worth a matrix product of its own."""
_HISTOGRAM_BINS = 30
_ROUNDING = 1e-9
"""What differs by rounding only is the same."""
# 2^16 P(w <= j) for w of Poisson(1): as many of these as 16 random bits reach is the weight.
_STEPS = [
    round(65536 * sum(math.exp(-1) / math.factorial(i) for i in range(j + 1))) for j in range(8)
]


@dataclass(frozen=True)
class ResamplingSettings:
    """The draws of every bootstrap and permutation test, their seed, and the confidence level."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95


def in_blocks(
    work: Callable[[np.random.Generator, int], Answer],
    draws: int,
    size: int,
    seed: Sequence[int],
    at_once: int,
) -> list[Answer]:
    """Call ``work(generator, how many)`` for blocks of at most ``at_once`` out of ``draws``.

    ``size`` is the random numbers of one draw. Every block has its own generator, made from
    ``seed`` and its position, so that the results do not depend on the number of threads.
    """
    sizes = [min(at_once, draws - first) for first in range(0, draws, at_once)]
    sources = np.random.SeedSequence(list(seed)).spawn(len(sizes))

    def block(index: int) -> Answer:
        return work(np.random.Generator(np.random.SFC64(sources[index])), sizes[index])

    threads = min(torch.get_num_threads(), len(sizes))
    if threads == 1 or draws * size < _WORTH_A_THREAD:
        return [block(index) for index in range(len(sizes))]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(block, range(len(sizes))))


def resampled(grouped: GroupedScores, resamples: int, seed: int) -> GroupSums:
    """Draw all nodes ``resamples`` times and return the sums of every group."""
    by_size = np.argsort(grouped.count, kind="stable")
    count = grouped.count[by_size]
    order = _slices(grouped.start[by_size], count)
    start = np.cumsum(count) - count
    mean = grouped.mean_loss
    # Around the group's mean single precision is enough; the means come back in float64 below.
    away = (grouped.loss - np.repeat(mean, grouped.count))[order]
    scores = np.stack([np.ones_like(away), away, away**2, grouped.right[order]], 1)
    scores = scores.astype(np.float32)
    nodes = len(order)
    rows = min(resamples, max(64, _NUMBERS // nodes))
    pieces = _pieces(start, count, max(_LARGE, _NUMBERS // rows))

    def draw(rng: np.random.Generator, rows: int) -> Floats:
        sums = np.zeros((rows, 4, len(count)))
        for low, high in pieces:
            first, last = np.searchsorted(start, [low, high - 1], side="right") - 1
            weights = poisson(rng, (rows, high - low))
            if first == last:
                sums[:, :, first] += weights @ scores[low:high]
                continue
            inside = slice(first, last + 1)
            for column in range(4):
                weighted = weights if column == 0 else weights * scores[low:high, column]
                sums[:, column, inside] = np.add.reduceat(weighted, start[inside] - low, axis=1)
        return sums

    sums = np.concatenate(in_blocks(draw, resamples, nodes, (seed, 1), rows))
    back = np.argsort(by_size)
    number, away_sum, away_square, right = (sums[:, column, back] for column in range(4))
    return GroupSums(
        number,
        away_sum + mean * number,
        away_square + 2 * mean * away_sum + mean**2 * number,
        right,
    )


def poisson(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Draw Poisson(1) numbers, by comparing 16 random bits with the distribution function."""
    size = shape[0] * shape[1]
    bits = rng.integers(0, 2**64, -(-size // 4), dtype=np.uint64).view(np.uint16)[:size]
    weights = np.zeros(size, np.uint8)
    for step in _STEPS:
        weights += (bits >= step).view(np.uint8)
    return weights.reshape(shape).astype(np.float32)


def _slices(start: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers start[k], …, start[k] + count[k] - 1 of every k in turn."""
    offset = np.repeat(start - (np.cumsum(count) - count), count)
    return offset + np.arange(count.sum())


def _pieces(
    start: npt.NDArray[np.int64], count: npt.NDArray[np.int64], most: int
) -> list[tuple[int, int]]:
    """The sorted nodes in pieces of about ``most``: small groups whole, or parts of a large one."""
    pieces: list[tuple[int, int]] = []
    low = 0
    for first, size in zip(start.tolist(), count.tolist(), strict=True):
        if size < _LARGE:
            if first + size - low > most and first > low:
                pieces.append((low, first))
                low = first
            continue
        if first > low:
            pieces.append((low, first))
        for at in range(first, first + size, most):
            pieces.append((at, min(at + most, first + size)))
        low = first + size
    end = int(start[-1] + count[-1])
    return [*pieces, (low, end)] if low < end else pieces


def p_values(
    seen: float,
    permuted: npt.ArrayLike,
    *,
    exhaustive: bool = False,
    tolerance: float | None = None,
) -> tuple[float, float]:
    """Compute both one-sided p-values of a permutation test.

    With B random permutations p = (1 + #{as extreme as seen}) / (1 + B), which is never 0 and
    rejects a true null hypothesis at α in at most α of cases (Phipson and Smyth 2010).

    Args:
        seen: The statistic of the data.
        permuted: The statistics of the permutations, (permutations,).
        exhaustive: Whether these are all permutations, the data itself among them, and not a sample
            of them; then nothing is added.
        tolerance: Differences up to this count as equal; by default 1e-9, or 1e-9 of ``seen``.

    Returns:
        The p-value for a statistic as low as ``seen``, and that for one as high.
    """
    values = np.asarray(permuted, dtype=np.float64)
    slack = _ROUNDING * max(1.0, abs(seen)) if tolerance is None else tolerance
    added = 0 if exhaustive else 1
    lower, higher = (
        (added + int(np.count_nonzero(extreme))) / (added + values.size)
        for extreme in (values <= seen + slack, values >= seen - slack)
    )
    return lower, higher


def shuffled_bias(
    grouped: GroupedScores, draws: int, seed: int, level: float = 0.95
) -> PermutationTest:
    """Compare the paper's bias with that of degrees shuffled among the nodes.

    Where shuffling changes nothing there are no draws and no p-value.

    Args:
        grouped: The nodes by degree.
        draws: How often the degrees are shuffled.
        seed: The seed of the shuffling.
        level: The share of the shuffled biases between ``low`` and ``high``.

    Returns:
        The bias, the distribution of the shuffled ones, and the p-value.
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

    biases = _in_blocks(draw, draws, len(losses), (seed, 2))
    # Where every node is a group of its own, or all losses are the same, the shuffled biases differ
    # by rounding only and mean nothing.
    smallest = (10 * np.finfo(float).eps * float(np.abs(grouped.loss).max())) ** 2
    if np.ptp(biases) <= rounding * biases.max() + smallest:
        return nothing
    _, p = p_values(seen, biases, tolerance=rounding * seen)
    low, high = np.quantile(biases, [(1 - level) / 2, (1 + level) / 2])
    counts, edges = np.histogram(biases, _HISTOGRAM_BINS)
    return PermutationTest(
        seen,
        float(biases.mean()),
        float(low),
        float(high),
        p,
        draws,
        edges.tolist(),
        counts.tolist(),
    )


def swapped_bias(
    first: GroupedScores, second: GroupedScores, draws: int, seed: int
) -> PairedBiasTest:
    """Test whether one model's bias is lower, by swapping the two models' losses at random nodes.

    The statistic is the ratio of the biases. Under the null hypothesis the two are the same model
    up to chance, so that every node's two losses may be swapped.

    Args:
        first: The nodes by degree, with the losses of the first model.
        second: The same nodes with the losses of the second.
        draws: How often the losses are swapped.
        seed: The seed of the swapping.

    Returns:
        Both biases, their ratio and the p-values.
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

    ratios = _in_blocks(draw, draws, len(away), (seed, 3))
    lower, higher = p_values(seen, ratios)
    p = min(1.0, 2 * min(lower, higher))
    return PairedBiasTest(*biases, math.exp(seen), lower, higher, draws, p)


def _biases(sums: npt.NDArray[np.floating[Any]], grouped: GroupedScores) -> Floats:
    """The bias of every row of group sums."""
    biases: Floats = (sums / grouped.count).var(1, ddof=1)
    return biases


def _in_blocks(draw: Any, draws: int, nodes: int, seed: tuple[int, int]) -> Floats:
    return np.concatenate(in_blocks(draw, draws, nodes, seed, max(1, _NUMBERS // nodes)))
