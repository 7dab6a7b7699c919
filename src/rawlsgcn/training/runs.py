"""What training takes and gives back: a job is a run to be trained, a trained run its outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..methods import Settings
from ..methods.base import all_finite


@dataclass(frozen=True)
class Job:
    """One run to be trained.

    Attributes:
        settings: The settings of the run.
        seed: Decides its initial weights and everything that is drawn.
    """

    settings: Settings
    seed: int


@dataclass(frozen=True)
class TrainedRun:
    """One trained run.

    A run diverged if a weight or a logit is not a finite number. It has no predictions: all its
    logits are NaN, so that nothing that is computed from them can look like a result.

    Attributes:
        parameters: The number of parameters.
        state: The weights by name, on the CPU.
        logits: The class scores of shape (nodes, classes), on the CPU.
        notes: Remarks for the user about how it was trained.
    """

    parameters: int
    state: dict[str, Tensor]
    logits: Tensor
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all_finite([*self.state.values(), self.logits]):
            object.__setattr__(self, "logits", torch.full_like(self.logits, math.nan))
