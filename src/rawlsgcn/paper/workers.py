"""Who works on a trial: a process of a machine, and whether it is still alive."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

BEAT_SECONDS = 20.0
"""How often a worker says that it is alive."""
GRACE_SECONDS = 300.0
"""After so long without a beat, a worker on another machine counts as dead."""


def this_process() -> dict[str, Any]:
    """The machine (as it was booted), the process and when that began."""
    return {"machine": _machine(), "pid": os.getpid(), "began": _began(os.getpid())}


def dead(owner: dict[str, Any] | None, beat: float | None) -> bool:
    """Whether a trial's owner has gone: looked up on this machine, by its beats on others.

    A process id is used again, so the process must also have begun when the owner did.
    """
    if owner is None or beat is None:
        return True
    if owner.get("machine") == _machine():
        began = _began(int(owner["pid"]))
        return began is None or began != owner.get("began")
    return time.time() - beat > GRACE_SECONDS


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = socket.gethostname()
    try:
        return (
            f"{name} {boot.read_text(encoding='ascii').strip()} {os.readlink('/proc/self/ns/pid')}"
        )
    except OSError:
        return name


def _began(pid: int) -> str | None:
    """When the process began, in its system's own measure; None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _alive(pid)
    state, *fields = text.rpartition(")")[2].split()
    return None if state in ("Z", "X") else fields[18]


def _alive(pid: int) -> str | None:
    """Where there is no /proc: only whether the process is there."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return "running"
