"""Repeated timings, and one comparison of ours with a rival's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of repetitions of one action; ``times`` multiplies them to the unit shown.

    A slow rival is timed over fewer epochs, and multiplied.
    """

    samples: list[float]
    times: float = 1.0

    @property
    def median(self) -> float:
        """The median, in the unit shown."""
        return statistics.median(self.samples) * self.times

    @property
    def low(self) -> float:
        """The least."""
        return min(self.samples) * self.times

    @property
    def high(self) -> float:
        """The most."""
        return max(self.samples) * self.times

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {"median": self.median, "low": self.low, "high": self.high, **asdict(self)}


@dataclass(frozen=True)
class Measurement:
    """One line of the benchmark: our seconds, the rival's, and the ratio of the medians.

    The ratio is the rival's time over ours, or with ``inverse`` ours over the rival's.
    """

    group: str
    name: str
    ours: Timing
    rival: Timing
    rival_name: str
    goal: str = ""
    inverse: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        ours, rival = self.ours.median, self.rival.median
        return ours / rival if self.inverse else rival / ours

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
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
) -> Timing:
    """Call ``action`` once to ``warm`` up and then ``repeats`` times on the clock."""
    samples = []
    for _ in range(repeats + warm):
        wait(device)
        start = time.perf_counter()
        action()
        wait(device)
        samples.append(time.perf_counter() - start)
    return Timing(samples[warm:], times)


def timed_in_turn(
    actions: Sequence[Callable[[], object]], repeats: int, device: torch.device
) -> list[Timing]:
    """Time several actions in rounds, so that a machine that slows down slows all of them."""
    rounds = [[timed(action, 1, device).samples for action in actions] for _ in range(repeats)]
    return [Timing([sample for (sample,) in each]) for each in zip(*rounds, strict=True)]


def wait(device: torch.device) -> None:
    """Wait until the GPU, if there is one, has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
