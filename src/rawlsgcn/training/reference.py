"""The reference engine: one run after another, every epoch on the whole graph, with early stopping.

It trains any method. The stacked engine is tested against it, and methods outside the GCN family
use it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from .._core.progress import ProgressCallback, no_progress
from ..methods import Inputs, Learner, Method
from ..methods.base import all_finite
from .runs import Job


class BestEpoch(nn.Module):
    """A network of the epoch with the best validation score, the epochs since, and all epochs.

    It is a module, so that a checkpoint can keep it.
    """

    score: Tensor
    since: Tensor
    epochs: Tensor

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.register_buffer("score", torch.tensor(-math.inf, dtype=torch.float64))
        self.register_buffer("since", torch.tensor(0))
        self.register_buffer("epochs", torch.tensor(0))

    def compare(self, network: nn.Module, score: float) -> None:
        """Take weights over that are all finite, if their score is the best; NaN never is."""
        self.epochs += 1
        if score > float(self.score) and all_finite(network.state_dict().values()):
            self.score.fill_(score)
            self.since.zero_()
            self.network.load_state_dict(network.state_dict())
        else:
            self.since += 1


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
        best = BestEpoch(learner.module) if job.settings.patience else None
        for epoch in range(1, job.settings.epochs + 1):
            learner.epoch()
            progress(done + epoch, total)
            if best is not None:
                best.compare(learner.module, learner.validation_score())
                if int(best.since) >= job.settings.patience:
                    break
        if best is not None and bool(best.score.isfinite()):
            learner.module.load_state_dict(best.network.state_dict())
        done += job.settings.epochs
        progress(done, total)
        yield learner
