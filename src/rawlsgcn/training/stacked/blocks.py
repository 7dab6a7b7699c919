"""Blocks of runs: how many are trained at once, and blocks side by side, each by one thread.

Small products gain nothing from a second thread, but runs do not depend on each other. Every block
computes the same bits whatever the number of threads, since it always uses one.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise
from typing import TypeVar

import torch

from ..._core.progress import ProgressCallback
from ..._core.threads import limited_threads
from ...methods import Inputs
from ...methods.base import Layer

B = TypeVar("B")
R = TypeVar("R")
# Runs per block on the CPU: wide products pay for dense features, narrow ones for sparse.
_DENSE_BLOCK, _SPARSE_BLOCK = 5, 1
# A GPU trains as many runs at once as fit into this share of its free memory, of which a run takes
# so many numbers for every parameter and for every entry of a layer's input and output.
GPU_SHARE, PARAMETER_COPIES, ENTRY_COPIES = 0.8, 20, 12


def block_size(sizes: Sequence[int], layers: Sequence[Layer], inputs: Inputs, on_gpu: bool) -> int:
    """Return how many runs of a network are trained at once."""
    if on_gpu:
        room = GPU_SHARE * free_memory(inputs.device)
        return max(1, int(room) // run_bytes(sizes, layers, inputs.dtype))
    first = layers[0].forward
    sparse = first is not None and first.matrix.layout != torch.strided
    return _SPARSE_BLOCK if sparse else _DENSE_BLOCK


def run_bytes(sizes: Sequence[int], layers: Sequence[Layer], dtype: torch.dtype) -> int:
    """Return an upper bound of the memory that a run takes in a block on a GPU.

    For every parameter its value, gradient, rate, decay, Adam's two means and the copies of a
    recording; for every entry of a layer's input and output the passes' intermediate results.
    """
    parameters = sum((a + 1) * b for a, b in pairwise(sizes))
    given = [layer.forward.matrix.shape[0] for layer in layers if layer.forward]
    rows = given + given[-1:] * (len(layers) - len(given))
    # The first layer's input is shared by all runs.
    widths = pairwise([0, *sizes[1:]])
    entries = sum(count * (a + b) for count, (a, b) in zip(rows, widths, strict=True))
    return torch.finfo(dtype).bits // 8 * (PARAMETER_COPIES * parameters + ENTRY_COPIES * entries)


def free_memory(device: torch.device) -> int:
    """The bytes that can be allocated on a GPU: free ones and those that torch does not use."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + unused


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
