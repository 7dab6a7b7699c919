"""The reference engine: one run after another, every epoch on the whole graph, with early stopping.

It trains any method. The stacked engine is tested against it, and methods outside the GCN family
use it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

from torch import Tensor

from .._core.progress import ProgressCallback, no_progress
from ..methods import Inputs, Learner, Method
from ..methods.base import all_finite
from .runs import Job


class EarlyStopping:
    """The best weights on validation, and the number of epochs since.

    Weights or scores that are not finite numbers are never the best. With a ``patience`` of 0
    nothing is watched and nothing is restored.
    """

    def __init__(self, learner: Learner, patience: int) -> None:
        self.learner, self.patience = learner, patience
        self.score, self.since = -math.inf, 0
        self.state: dict[str, Tensor] | None = None

    def should_stop(self) -> bool:
        """Compute the learner's score after an epoch; True when patience has run out."""
        if self.patience == 0:
            return False
        score = self.learner.validation_score()
        if score > self.score and all_finite(self.learner.module.state_dict().values()):
            self.score, self.since = score, 0
            self.state = copy.deepcopy(self.learner.module.state_dict())
        else:
            self.since += 1
        return self.since >= self.patience

    def restore_best(self) -> None:
        """Give the learner the weights with the best score."""
        if self.state is not None:
            self.learner.module.load_state_dict(self.state)


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
