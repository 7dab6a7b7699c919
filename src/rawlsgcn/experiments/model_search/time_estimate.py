"""How long ``auto`` takes: estimated from the steps that are done, and from a part of the next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..._core.progress import ProgressCallback, no_progress

#: The share of a step after which its own speed is used; before, it prepares the graph.
_ENOUGH = 0.1


class TimeEstimate:
    """Reports the seconds spent and the estimated seconds in total, 0 while they are not known.

    ``costs`` are the kind and the work of the steps to come: steps of the same kind take seconds in
    proportion to their work, in runs of the usual width. No step begins after the ``deadline``.
    """

    def __init__(
        self, progress: ProgressCallback | None, costs: Iterable[tuple[str, float]], deadline: float
    ) -> None:
        self.progress, self.deadline = progress or no_progress, deadline
        self.started = time.perf_counter()
        self._left = list(costs)
        self._done: list[tuple[str, float, float]] = []  # kind, work and seconds

    def skip(self, kind: str) -> float:
        """Leave out the next step of a kind; its work is returned."""
        place = [each for each, _ in self._left].index(kind)
        return self._left.pop(place)[1]

    @contextmanager
    def step(self, name: str, kind: str) -> Iterator[ProgressCallback]:
        """Do the next step of a kind, which reports its progress to what is yielded."""
        work, began = self.skip(kind), time.perf_counter()

        def within(done: int, total: int, description: str | None = None) -> None:
            self._report(name, kind, work, time.perf_counter() - began, done / max(1, total))

        within(0, 1)
        yield within
        self._done.append((kind, work, time.perf_counter() - began))
        self._report(name, kind, 0.0, 0.0, 0.0)

    def _report(self, name: str, kind: str, work: float, spent: float, share: float) -> None:
        done = [*self._done]
        if share >= _ENOUGH:
            done.append((kind, share * work, spent))
        if not any(amount for _, amount, _ in done):
            self.progress(0, 0, name)
            return

        def expected(kind: str, work: float) -> float:
            """The seconds of a step; a kind that is not measured is taken to be like others."""
            like = [each for each in done if each[0] == kind] or done
            return work * sum(each[2] for each in like) / sum(each[1] for each in like)

        current = max(0.0, expected(kind, work) - spent)
        if share >= _ENOUGH:
            current = spent * (1 - share) / share
        now = time.perf_counter()
        all_left = current + sum(expected(*each) for each in self._left)
        left = max(current, min(all_left, self.deadline - now))
        elapsed = now - self.started
        self.progress(round(elapsed), round(elapsed + left), name)
