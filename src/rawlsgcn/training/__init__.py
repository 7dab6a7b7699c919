"""The engines that train a method: stacked for the GCN family, reference for any method."""

from __future__ import annotations

from .engine_choice import ENGINES, train_runs
from .runs import Job, TrainedRun

__all__ = ["ENGINES", "Job", "TrainedRun", "train_runs"]
