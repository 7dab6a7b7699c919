"""How many threads a balancing takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Entries up to which a thread is woken in vain.
_FEW = 1 << 15


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """One thread for a small matrix, and where more tasks run than there are cores.

    A product gains by a second core, but if that core is busy with something else it waits for
    the second thread's turn, which takes many times as long as the product itself.
    """
    before = torch.get_num_threads()
    alone = entries <= _FEW or _runnable() > (os.cpu_count() or 1)
    torch.set_num_threads(1 if alone else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _runnable() -> int:
    """The tasks that run or wait for a core now, ourselves among them (Linux; elsewhere one)."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[3].split("/")[0])
    except OSError:
        return 1
