"""Set the number of threads of a call, for the calling thread alone; run blocks of work on some.

``torch.set_num_threads`` would change the number for the whole process. OpenMP and MKL keep one
number for every thread that calls them, and this module sets that one, where it can be reached in
the libraries that torch has loaded. Elsewhere the number stays what it is.

Two situations want fewer threads than torch's number. On a busy machine a parallel loop waits at
its end until the operating system has let its last thread run, which takes many times as long as
the loop itself. In a forked child the threads of its parent do not exist, and a parallel loop waits
for them forever.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Threads for work in blocks, at most: what they compute passes through one writer.
_MOST_THREADS = 4
#: Entries of a matrix up to which a second thread costs more than it brings in one product.
_FEW_ENTRIES = 1 << 15
#: Stored numbers of a graph up to which a second thread does not make training faster (Cora-ML and
#: Citeseer have a fifth of that, Amazon-Photo three times as many).
_SMALL_GRAPH = 1 << 20
#: Seconds after which the machine's load is read again.
_LOAD_INTERVAL = 0.02
_LIBRARIES = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}

_load_read_at, _was_busy = -1.0, False
_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def threads_for(entries: int) -> AbstractContextManager[None]:
    """Use one thread for a small matrix, on a busy machine and in a forked child.

    Only for work whose result does not depend on the number of threads.
    """
    return limited_threads(1 if entries <= _FEW_ENTRIES or _is_busy() else None)


def threads_for_graph(*tensors: Tensor) -> AbstractContextManager[None]:
    """Use one thread for a small graph, given by its tensors, whatever the load.

    So it does not wait for other threads on a busy machine, and its bits do not depend on the load.
    """
    stored = sum(t.numel() if t.layout == torch.strided else t._nnz() for t in tensors)
    return limited_threads(1 if stored <= _SMALL_GRAPH else None)


@contextmanager
def fork_safe_threads() -> Iterator[None]:
    """Use torch's number of threads, and one in a forked child."""
    with limited_threads(None):
        yield


@contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Use ``count`` threads in this thread; None keeps the number."""
    before = torch.get_num_threads()  # which also makes torch set up its own number first
    count = 1 if _forked else count
    if count is None or count == before == 1:
        yield
        return
    set_loops, _ = _setters()
    set_loops(count)
    try:
        with one_product_thread(count):
            yield
    finally:
        set_loops(before)


@contextmanager
def one_product_thread(count: int = 1) -> Iterator[None]:
    """Use one thread, or so many, for MKL's products, whatever the load."""
    _, set_products = _setters()
    before = set_products(count)
    try:
        yield
    finally:
        set_products(before)


@contextmanager
def training_threads() -> Iterator[Callable[[], None]]:
    """Set the threads of a training loop, such that the machine's load does not change its result.

    Torch's elementwise loops, its sums over one dimension and the compiled kernels give the same
    bits for any number of threads, so they use one thread while the machine is busy. MKL may split
    a long sum between its threads, so its products always use all, or always one where they are
    small (:func:`one_product_thread`).

    Yields:
        A function that adapts to the machine's load, which is read at most once in 20 ms.
    """
    set_loops, _ = _setters()
    before = torch.get_num_threads()
    # Inside another such loop the number may be one now, because of the load.
    outer: int | None = getattr(_training, "threads", None)
    count = 1 if _forked else outer or before

    def update() -> None:
        set_loops(1 if _is_busy() else count)

    _training.threads = count
    try:
        with one_product_thread(count):
            update()
            yield update
    finally:
        _training.threads = outer
        set_loops(before)


#: For every thread, the number of threads of the training loop that it runs.
_training = threading.local()


def _is_busy() -> bool:
    """Whether more tasks want to run than there are cores."""
    global _load_read_at, _was_busy
    now = time.monotonic()
    if now - _load_read_at > _LOAD_INTERVAL:
        _load_read_at, _was_busy = now, _runnable() > (os.cpu_count() or 1)
    return _was_busy


def _runnable() -> int:
    """Return the number of tasks that run or wait for a core now (Linux; elsewhere one)."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return 1


@cache
def _setters() -> tuple[Callable[[int], object], Callable[[int], int]]:
    """Return the setters of the calling thread's number for OpenMP and for MKL.

    The second one returns the number before.
    """
    name = _LIBRARIES.get(sys.platform, "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / name))
        loops = library.omp_set_num_threads
        loops.argtypes, loops.restype = [ctypes.c_int], None
    except (OSError, AttributeError):
        return (lambda count: None), (lambda count: 0)
    mkl = getattr(library, "MKL_Set_Num_Threads_Local", None)
    if mkl is None:
        return loops, (lambda count: 0)
    mkl.argtypes, mkl.restype = [ctypes.c_int], ctypes.c_int
    return loops, mkl


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
