"""The engines that train a method: on the whole graph, on smoothed rows or on samples."""

from __future__ import annotations

from .engine_choice import ENGINES
from .runs import Job, TrainedRun
from .whole_graph import train_runs

__all__ = ["ENGINES", "Job", "TrainedRun", "train_runs"]
