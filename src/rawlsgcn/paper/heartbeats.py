"""The heartbeats of workers, by which the trials of those that have died are found.

Optuna's own heartbeat (``RDBStorage(heartbeat_interval=...)`` with ``fail_stale_trials``) cannot be
used: it runs only inside ``Study.optimize``, which gives one trial at a time to one function, and
``Study.ask`` warns against it, while a worker here trains up to seven trials together. So a worker
writes its heartbeat into a user attribute of its trials, with its machine and process. A running
trial is abandoned when its process has ended or its heartbeat has stopped; it is then marked as
failed, and its point is enqueued again. If the worker was only slow, its result is ignored.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._core.machine import machine_id, process_runs

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

HEARTBEAT_SECONDS = 20.0
GRACE_SECONDS = 300.0
"""A worker whose last heartbeat is older than this is taken for dead."""


@contextmanager
def heartbeat(trials: Sequence[optuna.Trial]) -> Iterator[None]:
    """Write a heartbeat into running trials every 20 seconds while the context lasts."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            for trial in trials:
                try:
                    keep_attributes(trial, worker=this_worker())
                except Exception:
                    break  # the storage is out of reach: the next beat tries again

    thread = threading.Thread(target=beat, daemon=True)
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


def keep_attributes(trial: optuna.Trial, **attributes: Any) -> bool:
    """Keep attributes with a trial; False where it had ended before."""
    from optuna.exceptions import UpdateFinishedTrialError

    try:
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
    except UpdateFinishedTrialError:
        return False
    return True
