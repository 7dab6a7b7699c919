"""Blocks of runs trained side by side, each by one thread.

Small products gain nothing from a second thread, but runs do not depend on each other. Every block
computes the same bits whatever the number of threads, since it always uses one.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
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

    Args:
        train: Trains a block; it calls ``counter`` after every epoch.
        blocks: The blocks.
        workers: The number of threads.
        counter: Stops the other blocks if one of them fails.

    Returns:
        What ``train`` returned, in the order of the blocks.
    """

    def one(block: B) -> R:
        with limited_threads(1):
            return train(block)

    with ThreadPoolExecutor(workers, "rawlsgcn-training") as pool:
        # Every thread has a copy of the caller's context, which may forbid the compiled kernels.
        futures = [pool.submit(contextvars.copy_context().run, one, block) for block in blocks]
        try:
            failed = any(future.exception() for future in wait(futures, None, FIRST_EXCEPTION).done)
        except BaseException:  # Ctrl-C
            _end(futures, counter)
            raise
        if failed:
            _end(futures, counter)
            raise next(error for error in map(_failure, futures) if error is not None)
    return [future.result() for future in futures]


def _end(futures: Sequence[Future[R]], counter: EpochCounter) -> None:
    """Let no block go on."""
    counter.stop.set()
    for future in futures:
        future.cancel()


def _failure(future: Future[R]) -> BaseException | None:
    """Why a block failed; None if it ended, or was ended because of another."""
    error = None if future.cancelled() else future.exception()
    return None if isinstance(error, StoppedError) else error
