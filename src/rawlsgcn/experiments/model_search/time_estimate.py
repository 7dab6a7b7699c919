"""How long ``auto`` takes: estimated from the steps that are done, and from a part of the next."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from ..._core.progress import ProgressCallback

#: The share of a step after which its own speed is used; before, it prepares the graph.
_ENOUGH = 0.1


class Cost(NamedTuple):
    """What a step costs: steps of the same kind take seconds in proportion to their work.

    The work is counted in trained runs of the usual width.
    """

    kind: str
    work: float


class TimeEstimate:
    """Reports the seconds spent and the estimated seconds in total.

    The seconds in total are 0 while they are not known. ``costs`` are those of the steps to come,
    in their order; no step begins after the ``deadline``.
    """

    def __init__(
        self, progress: ProgressCallback | None, costs: Iterable[Cost], deadline: float
    ) -> None:
        self.progress, self.deadline = progress, deadline
        self.started = time.perf_counter()
        self._left = list(costs)
        self._done: list[tuple[Cost, float]] = []  # what was done, and the seconds that it took
        self._name, self._cost, self._began = "", Cost("", 0.0), self.started

    def begin(self, name: str, kind: str) -> None:
        """Begin the next step of a kind."""
        self.skip(kind)
        self._name, self._began = name, time.perf_counter()
        self._report(0.0)

    def skip(self, kind: str) -> None:
        """Leave out the next step of a kind."""
        place = [cost.kind for cost in self._left].index(kind)
        self._cost = self._left.pop(place)

    def within(self, done: int, total: int, description: str | None = None) -> None:
        """Report how much of the current step is done: the callback of a training."""
        self._report(done / max(1, total))

    def end(self) -> None:
        """End the current step."""
        self._done.append((self._cost, time.perf_counter() - self._began))
        self._cost = Cost(self._cost.kind, 0.0)
        self._report(0.0)

    def _report(self, share: float) -> None:
        if self.progress is None:
            return
        now = time.perf_counter()
        spent, elapsed, (kind, work) = now - self._began, now - self.started, self._cost
        measured = share >= _ENOUGH
        done = [*self._done, *[(Cost(kind, share * work), spent)] * measured]
        if not any(cost.work for cost, _ in done):
            self.progress(0, 0, self._name)
            return

        def expected(cost: Cost) -> float:
            """The seconds of a step; a kind that is not measured is taken to be like others."""
            like = [each for each in done if each[0].kind == cost.kind] or done
            return cost.work * sum(took for _, took in like) / sum(each.work for each, _ in like)

        current = max(0.0, expected(self._cost) - spent)
        if measured:
            current = spent * (1 - share) / share
        all_left = current + sum(map(expected, self._left))
        left = max(current, min(all_left, self.deadline - now))
        self.progress(round(elapsed), round(elapsed + left), self._name)
