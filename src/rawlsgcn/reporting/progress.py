"""A status line and a progress bar on a terminal; in a log file or a pipe a line now and then."""

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


_status_shown = False
#: Seconds before the first plain line of progress, and between two of them.
FIRST_LINE, NEXT_LINE = 10.0, 30.0


def show_status(text: str) -> None:
    """Write a line on stderr that the next output replaces, if a person sees stderr.

    It needs no import, so it can be shown while large packages are imported. Of several processes
    that torchrun started only the first writes it.
    """
    global _status_shown
    if stderr_is_terminal() and os.environ.get("RANK", "0") == "0":
        sys.stderr.write(f"\r\x1b[2K{printable(text)}")
        sys.stderr.flush()
        _status_shown = True


def clear_status() -> None:
    """Remove the line of :func:`show_status`, before anything else is written to the terminal."""
    global _status_shown
    if _status_shown:
        _status_shown = False
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


@contextmanager
def progress(
    description: str, *, interval: float = 0.1, seconds: bool = False
) -> Iterator[ProgressCallback]:
    """Show on stderr how far the block is: a bar on a terminal, plain lines elsewhere.

    Calls between two redraws only read the clock, so that a training loop may call it in every
    epoch. The bar is removed at the end, also after an error or Ctrl-C. Plain lines come when the
    block has run for ten seconds, every half a minute from then on, and at its end. Of several
    processes that torchrun started only the first shows anything.

    Args:
        description: The text before the bar, until a call gives another.
        interval: Seconds between two redraws.
        seconds: Whether the callback is called with seconds: those spent, and an estimate of those
            in total, which may change; 0 while there is none.

    Returns:
        A context manager that gives the callback, which moves the bar.
    """
    if os.environ.get("RANK", "0") != "0":
        yield no_progress
        return
    if not stderr_is_terminal():
        with _lines(description, seconds) as line:
            yield line
        return
    clear_status()
    from rich import progress as bars
    from rich.console import Console

    columns = [bars.TextColumn("{task.description}", markup=False), bars.BarColumn()]
    if seconds:  # rich forgets its own estimate whenever the total changes
        left_column = bars.TextColumn("{task.fields[left]}", style="progress.remaining")
        columns += [bars.TimeElapsedColumn(), left_column]
    else:
        columns += [bars.MofNCompleteColumn(), bars.TimeElapsedColumn(), bars.TimeRemainingColumn()]
    bar = bars.Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(printable(description), total=None, left="")
    last, reached = -interval, 0

    def callback(done: int, total: int, description: str | None = None) -> None:
        nonlocal last, reached
        now = time.monotonic()
        if now - last < interval and (done < total or seconds):
            return
        if done < reached:
            # A new task began: its remaining time is not that of the one before.
            bar.reset(task)
        last, reached = now, done
        words = None if description is None else printable(description)
        left = _duration_left(total - done) if seconds and total else ""
        known = total if total or not seconds else None
        bar.update(task, completed=done, total=known, description=words, left=left)

    with bar:
        yield callback


@contextmanager
def _lines(phase: str, seconds: bool) -> Iterator[ProgressCallback]:
    """Write a line of text at most every half a minute, and one at the end of a long phase."""
    began = time.monotonic()
    due = began + FIRST_LINE

    def write(words: str) -> None:
        print(printable(words), file=sys.stderr, flush=True)

    def callback(done: int, total: int, description: str | None = None) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due:
            return
        due = now + NEXT_LINE
        share = "" if seconds or not total else f", {min(done, total) / total:.0%}"
        left = f", {_duration_left(total - done)}" if seconds and total else ""
        words = phase if description in (None, phase) else f"{phase}: {description}"
        write(f"{words}{share}{left} (after {now - began:.0f} s)")

    yield callback
    if due > began + FIRST_LINE:
        write(f"{phase}: done in {time.monotonic() - began:.0f} s")


def _duration_left(seconds: int) -> str:
    """``about 3:20 left``, or ``about 1:05 hours left``."""
    minutes, rest = divmod(max(0, seconds), 60)
    if minutes < 60:
        return f"about {minutes}:{rest:02} left"
    return f"about {minutes // 60}:{minutes % 60:02} hours left"


@contextmanager
def spinner(description: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr while the block runs; the given function changes its text."""
    if not stderr_is_terminal():
        yield lambda what: None
        return
    clear_status()
    from rich.console import Console

    with Console(stderr=True).status(printable(description)) as status:
        yield lambda what: status.update(printable(what))
