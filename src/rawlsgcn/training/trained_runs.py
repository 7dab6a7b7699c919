"""What training gives back, before anybody has judged it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods import Settings
from ..methods.base import all_finite


@dataclass(frozen=True)
class Job:
    """One run to be trained: its settings and its seed."""

    settings: Settings
    seed: int


@dataclass(frozen=True)
class TrainedRun:
    """One trained run: its weights by name, and the logits of all nodes (nodes, classes).

    A run diverged where a weight or a logit is not a finite number. It has no predictions: all
    its logits are NaN, so that nothing that is computed from it can look like a result.
    """

    parameters: int
    state: dict[str, Tensor]
    logits: Tensor
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all_finite([*self.state.values(), self.logits]):
            object.__setattr__(self, "logits", torch.full_like(self.logits, math.nan))
