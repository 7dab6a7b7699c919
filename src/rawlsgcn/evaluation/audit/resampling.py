"""Random draws in blocks, and the Poisson bootstrap of nodes.

Drawing n nodes with replacement gives each node a number of appearances that is binomial and, but
for a total held at n, Poisson(1) and independent. So every node has a Poisson(1) weight w
(the Poisson bootstrap; Hanley and MacGibbon, 2006), and of each group k only

    N_k = Σ w,    S_k = Σ w x,    Q_k = Σ w x²,    R_k = Σ w r

are kept (x the loss, r whether right): the intervals follow from them. Given N_k, the draws
within a group are those of the usual bootstrap with N_k draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch

from .group_statistics import GroupedScores, GroupSums

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_WORTH_A_THREAD = 1 << 24
"""Random numbers under which starting threads costs more than it saves."""
_NUMBERS = 1 << 20
"""Random numbers made at once by a thread: 4 MB in single precision."""
_LARGE = 512
"""From this size on a group is worth a matrix product of its own."""
# 2^16 P(w <= j) for w of Poisson(1): as many of these as 16 random bits reach is the weight.
_STEPS = [
    round(65536 * sum(math.exp(-1) / math.factorial(i) for i in range(j + 1))) for j in range(8)
]


def in_blocks(
    work: Callable[[np.random.Generator, int], Floats],
    draws: int,
    size: int,
    seed: Sequence[int],
    at_once: int | None = None,
) -> Floats:
    """Join what ``work(generator, how many)`` returns for blocks of ``at_once`` out of ``draws``.

    ``size`` is the random numbers of one draw. Every block has its own generator, made from
    ``seed`` and its position, so that the results do not depend on the number of threads.
    """
    at_once = at_once or max(1, _NUMBERS // size)
    sizes = [min(at_once, draws - first) for first in range(0, draws, at_once)]
    sources = np.random.SeedSequence(list(seed)).spawn(len(sizes))

    def block(index: int) -> Floats:
        return work(np.random.Generator(np.random.SFC64(sources[index])), sizes[index])

    threads = min(torch.get_num_threads(), len(sizes))
    if threads == 1 or draws * size < _WORTH_A_THREAD:
        return np.concatenate([block(index) for index in range(len(sizes))])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(block, range(len(sizes)))))


def resampled(grouped: GroupedScores, resamples: int, seed: int) -> GroupSums:
    """Draw all nodes ``resamples`` times and return the sums of every group."""
    by_size = np.argsort(grouped.count, kind="stable")
    count = grouped.count[by_size]
    order = np.argsort(np.repeat(grouped.count, grouped.count), kind="stable")
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

    sums = in_blocks(draw, resamples, nodes, (seed, 1), rows)
    back = np.argsort(by_size)
    number, away_sum, away_square, right = (sums[:, column, back] for column in range(4))
    square = away_square + 2 * mean * away_sum + mean**2 * number
    return GroupSums(number, away_sum + mean * number, square, right)


def poisson(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Draw Poisson(1) numbers, by comparing 16 random bits with the distribution function."""
    size = shape[0] * shape[1]
    bits = rng.integers(0, 2**64, -(-size // 4), dtype=np.uint64).view(np.uint16)[:size]
    weights = np.zeros(size, np.uint8)
    for step in _STEPS:
        weights += (bits >= step).view(np.uint8)
    return weights.reshape(shape).astype(np.float32)


def _pieces(start: Ints, count: Ints, most: int) -> list[tuple[int, int]]:
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
