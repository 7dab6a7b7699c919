"""How far apart two cores are: the time after which one sees what the other has written.

Cores of one chiplet are tens of nanoseconds apart and share its path to memory; those of two are
hundreds apart and have one each. A host may move the cores of a virtual machine from one to two
and back within seconds, and with them goes what a second core adds to a loop bound by memory.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

_SOURCE = """
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { TURNS = 100000 };
static _Alignas(128) atomic_int turn;

static void *answer(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * i + 1)
            ;
        atomic_store_explicit(&turn, 2 * i + 2, memory_order_release);
    }
    return unused;
}

double nanoseconds(void)
{
    pthread_t other;
    struct timespec begin, end;
    atomic_store(&turn, 0);
    if (pthread_create(&other, 0, answer, 0))
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < TURNS; i++) {
        atomic_store_explicit(&turn, 2 * i + 1, memory_order_release);
        while (atomic_load_explicit(&turn, memory_order_acquire) != 2 * i + 2)
            ;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    pthread_join(other, 0);
    return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / TURNS / 2;
}
"""


def core_distance() -> float:
    """Return the nanoseconds from one core to another; needs a C compiler and two idle cores."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "turns.c"), Path(folder, "turns.so")
        source.write_text(_SOURCE, encoding="utf-8")
        command = ["cc", "-O2", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, "-o", str(library), str(source)], check=True)
        measure = ctypes.CDLL(str(library)).nanoseconds
        measure.restype = ctypes.c_double
        return float(measure())
