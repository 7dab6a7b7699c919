"""A command in a process of its own: its seconds, its peak memory, and killing it halfway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from rawlsgcn._core.errors import RawlsError


@dataclass(frozen=True)
class Spent:
    """What a process took."""

    seconds: float
    processor_seconds: float
    peak_memory_mb: float


def spend(words: list[str], log: Path, kill_after: float | None = None) -> Spent | None:
    """Run Python with some arguments and wait for its end.

    Args:
        words: The arguments of Python.
        log: The file of what it prints.
        kill_after: Kill it with SIGKILL after so many seconds, if it is not done.

    Returns:
        What it took, or None if it was killed.

    Raises:
        RawlsError: If it fails.
    """
    began = time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen([sys.executable, *words], stdout=file, stderr=file)
    timer = None
    if kill_after is not None:
        timer = threading.Timer(kill_after, os.kill, (process.pid, signal.SIGKILL))
        timer.start()
    # The peak that the kernel kept of this very process, not of its siblings.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if timer is not None:
        timer.cancel()
        if process.returncode == -signal.SIGKILL:
            return None
    if process.returncode:
        said = log.read_text(encoding="utf-8", errors="replace").strip()
        raise RawlsError(f"{' '.join(words[:3])} failed: {said[-500:]}")
    return Spent(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
