"""A progress bar for a person who watches; nothing at all for a log file or a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._core.progress import ProgressCallback, no_progress
from .wording import printable


def watched() -> bool:
    """Whether a person sees stderr."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(description: str, *, interval: float = 0.1) -> Iterator[ProgressCallback]:
    """Give a function ``tell(done, total, description)`` that moves a bar on stderr.

    Calls between two redraws cost one look at the clock, so that a training loop may call it
    every epoch. The bar vanishes at the end, also after an error or Ctrl-C.
    """
    if not watched():
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

    def tell(done: int, total: int, description: str | None = None) -> None:
        nonlocal last, reached
        now = time.monotonic()
        if now - last < interval and done < total:
            return
        if done < reached:
            # Another piece of work began: its time left is not that of the one before.
            bar.reset(task)
        last, reached = now, done
        words = None if description is None else printable(description)
        bar.update(task, completed=done, total=total, description=words)

    with bar:
        yield tell


@contextmanager
def working(description: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while something of unknown length is done; call it to say what."""
    if not watched():
        yield lambda what: None
        return
    from rich.console import Console

    with Console(stderr=True).status(printable(description)) as status:
        yield lambda what: status.update(printable(what))
