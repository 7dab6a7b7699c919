"""Which worker trains a trial, and whether it has crashed, so that another may take it over.

Optuna's own heartbeat runs only inside ``Study.optimize``; here several trials are trained at once.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

GRACE_SECONDS = 300.0
"""A worker whose last heartbeat is older than this is taken for dead."""


def this_worker() -> dict[str, Any]:
    """Describe this process, with the time of its heartbeat."""
    return {"machine": _machine(), "pid": os.getpid(), "heartbeat": time.time()}


def abandoned(trial: FrozenTrial) -> bool:
    """Whether the worker of a running trial has ended, as far as this machine can see."""
    worker = trial.user_attrs.get("worker", {})
    if time.time() - worker.get("heartbeat", 0.0) > GRACE_SECONDS:
        return True
    return worker.get("machine") == _machine() and not _alive(int(worker.get("pid", 0)))


def _machine() -> str:
    """Name this machine, its current boot and its process namespace."""
    name = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{name} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return name


def _alive(pid: int) -> bool:
    """Return whether there is such a process on this machine; a zombie has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
