"""The heartbeats of workers, by which the trials of those that have died are found.

A worker writes its machine, process and heartbeat into its trials (Optuna's own heartbeat runs only
inside ``Study.optimize``, one trial at a time). A running trial is abandoned when its process has
ended or its heartbeat has stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .._core.machine import machine_id, process_runs

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, Trial

HEARTBEAT_SECONDS = 20.0
GRACE_SECONDS = 300.0
"""A worker whose last heartbeat is older than this is taken for dead."""


@contextmanager
def heartbeat(trials: Sequence[Trial]) -> Iterator[None]:
    """Write a heartbeat into running trials every 20 seconds while the context lasts."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            for trial in trials:
                with suppress(Exception):  # the storage is out of reach: the next beat tries again
                    trial.set_user_attr("worker", this_worker())

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def this_worker() -> dict[str, Any]:
    """Describe this process, with the time of its heartbeat."""
    return {"machine": machine_id(), "pid": os.getpid(), "heartbeat": time.time()}


def abandoned(trial: FrozenTrial) -> bool:
    """Whether the worker of a running trial has ended, as far as this machine can see."""
    worker = trial.user_attrs.get("worker", {})
    if time.time() - worker.get("heartbeat", 0.0) > GRACE_SECONDS:
        return True
    return worker.get("machine") == machine_id() and not process_runs(int(worker.get("pid", 0)))
