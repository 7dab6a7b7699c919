"""Blocks of random work on several threads, with the same numbers however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

Answer = TypeVar("Answer")
_WORTH_A_THREAD = 1 << 24
"""Random numbers under which starting threads costs more than it saves."""


def in_blocks(
    work: Callable[[np.random.Generator, int], Answer],
    draws: int,
    size: int,
    seed: Sequence[int],
    rows: int,
) -> list[Answer]:
    """``work(generator, how many)`` for blocks of at most ``rows`` out of ``draws``.

    ``size`` is the random numbers of one draw. Every block has a generator of its own, made from
    ``seed`` and its place, so that the answers do not depend on the threads.
    """
    sizes = [min(rows, draws - first) for first in range(0, draws, rows)]
    sources = np.random.SeedSequence(list(seed)).spawn(len(sizes))

    def block(index: int) -> Answer:
        return work(np.random.Generator(np.random.SFC64(sources[index])), sizes[index])

    threads = min(torch.get_num_threads(), len(sizes))
    if threads == 1 or draws * size < _WORTH_A_THREAD:
        return [block(index) for index in range(len(sizes))]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(block, range(len(sizes))))
