"""Blocks of work on a few threads, their results in the order of the blocks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Threads that are used at most: what they compute passes through one writer.
_MOST_THREADS = 4


def num_threads() -> int:
    """Return the number of threads for work in blocks: one for each core, up to four."""
    return max(1, min(_MOST_THREADS, os.cpu_count() or 1))


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` for each item in order, some of them computed in advance.

    At most one result more than there are threads waits to be taken, so that memory is bounded.
    """
    threads = num_threads() if threads is None else threads
    with ThreadPoolExecutor(threads, "rawlsgcn-blocks") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
