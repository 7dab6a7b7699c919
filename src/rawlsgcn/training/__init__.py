"""The engines that run a method: the fast one for the GCN family, the plain one for any."""

from __future__ import annotations

from .train import train
from .trained_runs import Job, TrainedRun

__all__ = ["Job", "TrainedRun", "train"]
