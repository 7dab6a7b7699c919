"""The progress callback that long computations take."""

from __future__ import annotations

from typing import Protocol


class ProgressCallback(Protocol):
    """A function that a long computation calls to report its progress.

    Args:
        done: The steps that are done.
        total: The steps in total.
        description: The current task, where there are several.
    """

    def __call__(self, done: int, total: int, description: str | None = None) -> None: ...


def no_progress(done: int, total: int, description: str | None = None) -> None:
    """Ignore the call: the default :class:`ProgressCallback`."""
