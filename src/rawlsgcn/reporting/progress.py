"""A progress bar on a terminal, and nothing in a log file or a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._core.progress import ProgressCallback, no_progress
from .._core.text import printable


def stderr_is_terminal() -> bool:
    """Whether a person sees stderr."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(description: str, *, interval: float = 0.1) -> Iterator[ProgressCallback]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal.

    Calls between two redraws only read the clock, so that a training loop may call it in every
    epoch. The bar is removed at the end, also after an error or Ctrl-C.

    Args:
        description: The text before the bar, until a call gives another.
        interval: Seconds between two redraws.

    Returns:
        A context manager that gives the callback, which moves the bar.
    """
    if not stderr_is_terminal():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(printable(description), total=None)
    last, reached = -interval, 0

    def callback(done: int, total: int, description: str | None = None) -> None:
        nonlocal last, reached
        now = time.monotonic()
        if now - last < interval and done < total:
            return
        if done < reached:
            # A new task began: its remaining time is not that of the one before.
            bar.reset(task)
        last, reached = now, done
        words = None if description is None else printable(description)
        bar.update(task, completed=done, total=total, description=words)

    with bar:
        yield callback


@contextmanager
def spinner(description: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr while the block runs; the given function changes its text."""
    if not stderr_is_terminal():
        yield lambda what: None
        return
    from rich.console import Console

    with Console(stderr=True).status(printable(description)) as status:
        yield lambda what: status.update(printable(what))
