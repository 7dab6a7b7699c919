"""The progress callback that long computations take."""

from __future__ import annotations

from typing import Protocol


class ProgressCallback(Protocol):
    """A function that is called with the steps done, the steps in total and a description."""

    def __call__(self, done: int, total: int, description: str | None = None) -> None: ...


def no_progress(done: int, total: int, description: str | None = None) -> None:
    """Ignore the call: the default :class:`ProgressCallback`."""
