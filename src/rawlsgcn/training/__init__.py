"""The engines that train a method: stacked for the GCN family, reference for any method."""

from __future__ import annotations

from .engines import ENGINES, train_runs
from .runs import Job, TrainedRun

__all__ = ["ENGINES", "Job", "TrainedRun", "train_runs"]
