"""How many threads a balancing takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Entries up to which a thread is woken in vain, and from which it is always worth its while.
_FEW, _MANY = 1 << 15, 1 << 22


@contextmanager
def threads_for(entries: int) -> Iterator[None]:
    """One thread for a small matrix, and for a middling one where no core is idle.

    A product of a tenth of a millisecond gains by a second core, but if that core is busy with
    something else it waits for the second thread's turn, which takes many times as long.
    """
    before = torch.get_num_threads()
    few = entries <= _FEW or (entries <= _MANY and _runnable() > (os.cpu_count() or 1))
    torch.set_num_threads(1 if few else before)
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
