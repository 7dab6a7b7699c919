"""What training gives back, before anybody has judged it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ..methods import Settings

# Called with (steps done, steps in all); a progress bar, or nothing.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """One run to be trained: its settings and its seed."""

    settings: Settings
    seed: int


@dataclass(frozen=True)
class Run:
    """One trained run: its weights by name, and the logits of all nodes (nodes, classes)."""

    parameters: int
    state: dict[str, Tensor]
    logits: Tensor


def silent(done: int, total: int) -> None:
    """The progress that shows nothing."""
