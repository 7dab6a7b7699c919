"""Timing with repetitions, and the form that every figure of the benchmark has."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Seconds:
    """Repeated timings of one thing; ``times`` is how often that thing fits into the unit shown.

    A rival that is slow and the same in every epoch is timed over fewer epochs and multiplied.
    """

    samples: list[float]
    times: float = 1.0

    @property
    def median(self) -> float:
        return statistics.median(self.samples) * self.times

    @property
    def low(self) -> float:
        return min(self.samples) * self.times

    @property
    def high(self) -> float:
        return max(self.samples) * self.times

    def to_dict(self) -> dict[str, Any]:
        return {"median": self.median, "low": self.low, "high": self.high, **asdict(self)}


@dataclass(frozen=True)
class Figure:
    """One line of the benchmark: what was done, by us and by the rival, and the ratio of medians.

    ``ratio`` is the rival's time over ours, unless ``inverse`` says that ours stands above.
    """

    group: str
    name: str
    ours: Seconds
    rival: Seconds
    rival_name: str
    goal: str = ""
    inverse: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        ours, rival = self.ours.median, self.rival.median
        return ours / rival if self.inverse else rival / ours

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "name": self.name,
            "ratio": self.ratio,
            "of": "ours / rival" if self.inverse else "rival / ours",
            "goal": self.goal,
            "ours": self.ours.to_dict(),
            "rival": self.rival.to_dict(),
            "rival_name": self.rival_name,
            **self.facts,
        }


def timed(
    action: Callable[[], object],
    repeats: int,
    device: torch.device,
    times: float = 1.0,
    *,
    warm: bool = True,
) -> Seconds:
    """Call ``action`` once to ``warm`` up and then ``repeats`` times on the clock."""
    samples = []
    for _ in range(repeats + warm):
        wait(device)
        start = time.perf_counter()
        action()
        wait(device)
        samples.append(time.perf_counter() - start)
    return Seconds(samples[warm:], times)


def timed_in_turn(
    actions: Sequence[Callable[[], object]], repeats: int, device: torch.device
) -> list[Seconds]:
    """The same for several rivals, each warmed up and timed in every round.

    A machine that slows down meanwhile slows all of them down.
    """
    rounds = [[timed(action, 1, device).samples for action in actions] for _ in range(repeats)]
    return [Seconds([sample for (sample,) in each]) for each in zip(*rounds, strict=True)]


def wait(device: torch.device) -> None:
    """Until the GPU, where there is one, has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
