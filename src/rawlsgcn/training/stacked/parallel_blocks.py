"""Blocks of runs trained side by side, each by one thread.

Small products gain nothing from a second thread, but runs do not depend on each other. Every block
computes the same bits whatever the number of threads, since it always uses one.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from ..._core.progress import ProgressCallback
from ..._core.threads import limited_threads

B = TypeVar("B")
R = TypeVar("R")


class StoppedError(Exception):
    """Another block has failed, or the user has interrupted the training."""


class EpochCounter:
    """The epochs done by all threads; it ends those that must stop."""

    def __init__(self, total: int, progress: ProgressCallback) -> None:
        self.total, self.done, self.progress = total, 0, progress
        self.lock, self.stop = threading.Lock(), threading.Event()

    def __call__(self) -> None:
        """Count an epoch.

        Raises:
            StoppedError: If the training is over.
        """
        if self.stop.is_set():
            raise StoppedError
        with self.lock:
            self.done += 1
            self.progress(self.done, self.total)


def train_side_by_side(
    train: Callable[[B], R], blocks: Sequence[B], workers: int, counter: EpochCounter
) -> list[R]:
    """Call ``train`` for every block, in ``workers`` threads that use one thread each.

    ``train`` calls ``counter`` after every epoch, which stops the other blocks if one fails.
    """

    def one(block: B) -> R:
        with limited_threads(1):
            return train(block)

    with ThreadPoolExecutor(workers, "rawlsgcn-training") as pool:
        # Every thread has a copy of the caller's context, which may forbid the compiled kernels.
        futures = [pool.submit(contextvars.copy_context().run, one, block) for block in blocks]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:  # a block has failed, or Ctrl-C
            counter.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]
