"""The plain engine: one run after another, every epoch on the whole graph.

It trains any method. The fast engine is tested against it, and methods outside the GCN family
use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..methods import Inputs, Learner, Method
from .runs import Job, Progress, silent


def train(
    method: Method, inputs: Inputs, jobs: Sequence[Job], progress: Progress = silent
) -> list[Learner]:
    """Train every job from its seed and return the learners in the same order."""
    total, done, learners = sum(job.settings.epochs for job in jobs), 0, []
    gpus = [inputs.device] if inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        for job in jobs:
            learner = method.learner(inputs, job.settings, job.seed)
            for _ in range(job.settings.epochs):
                learner.epoch()
                done += 1
                progress(done, total)
            learners.append(learner)
    return learners
