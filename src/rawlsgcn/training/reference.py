"""The reference engine: one run after another, every epoch on the whole graph, with early stopping.

It trains any method. The stacked engine is tested against it, and methods outside the GCN family
use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._core.progress import ProgressCallback, no_progress
from ..methods import Inputs, Learner, Method
from .early_stopping import EarlyStopping
from .runs import Job


def train_reference(
    method: Method,
    inputs: Inputs,
    jobs: Sequence[Job],
    progress: ProgressCallback = no_progress,
) -> Iterator[Learner]:
    """Train one job after another; each learner is yielded before the next one is made."""
    total, done = sum(job.settings.epochs for job in jobs), 0
    for job in jobs:
        learner = method.learner(inputs, job.settings, job.seed)
        stopping = EarlyStopping(learner, job.settings.patience)
        for epoch in range(1, job.settings.epochs + 1):
            learner.epoch()
            progress(done + epoch, total)
            if stopping.should_stop():
                break
        stopping.restore_best()
        done += job.settings.epochs
        progress(done, total)
        yield learner
