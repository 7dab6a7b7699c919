"""Share the cases among child processes, replace those that die, and collect what they found."""

from __future__ import annotations

import multiprocessing
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from . import child
from .reader import Case, Reader
from .verdict import Outcome

_BATCH = 250
_PATIENCE = 90.0
"""Seconds on the clock after which a child that uses no processor time is stuck too."""
Batch = tuple[str, int, int]


@dataclass
class Tally:
    """What became of one reader's cases, and the processor time they took."""

    cases: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True)
class Finding:
    """A wrong outcome, and the input that led to it."""

    case: Case
    outcome: Outcome

    @property
    def key(self) -> tuple[str, str, str]:
        return self.case.reader, self.outcome.kind, self.outcome.where


def fuzz(
    readers: list[Reader],
    cases: int,
    seed: int,
    jobs: int,
    *,
    first: int = 0,
    found: Callable[[Finding], None],
    tell: Callable[[dict[str, Tally]], None] = lambda tallies: None,
) -> dict[str, Tally]:
    """Run ``cases`` cases of every reader; ``found`` gets the first finding of each kind."""
    tallies = {reader.name: Tally() for reader in readers}
    batches = _batches([reader.name for reader in readers], first, first + cases)
    seen: set[tuple[str, str, str]] = set()

    def note(finding: Finding) -> None:
        tallies[finding.case.reader].findings[finding.key[1:]] += 1
        if finding.key not in seen:
            seen.add(finding.key)
            found(finding)

    shared = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="fuzz-", dir=shared if shared.is_dir() else None))
    by_name = {reader.name: reader for reader in readers}
    workers = [_Worker(by_name, root / str(job), seed) for job in range(jobs)]
    try:
        active = [worker for worker in workers if worker.take(next(batches, None))]
        while active:
            wait([worker.pipe for worker in active], timeout=1.0)
            for worker in active:
                worker.collect(note, tallies)
            tell(tallies)
            active = [
                worker for worker in active if worker.batch or worker.take(next(batches, None))
            ]
    finally:
        for worker in workers:
            worker.stop()
        shutil.rmtree(root, ignore_errors=True)
    return tallies


def _batches(names: list[str], first: int, last: int) -> Iterator[Batch]:
    for start in range(first, last, _BATCH):
        for name in names:
            yield name, start, min(start + _BATCH, last)


class _Worker:
    """One child process after the other."""

    def __init__(self, readers: dict[str, Reader], folder: Path, seed: int) -> None:
        self._readers, self._folder, self._seed = readers, folder, seed
        self._context = multiprocessing.get_context("fork")
        self._cells = self._context.Array("d", child.Status.SIZE, lock=False)
        self._status = child.Status(self._cells)
        self._process: Any = None
        self.batch: Batch | None = None
        self.pipe: Any = None
        self._last = (-1, 0.0)

    def take(self, batch: Batch | None) -> bool:
        """Begin a batch; whether there was one."""
        self.batch = batch
        if batch is not None:
            self._send(batch)
        return batch is not None

    def _send(self, batch: Batch) -> None:
        if self._process is None:
            self._start()
        self._status.index, self._status.reading = batch[1], False
        self._status.accepted = self._status.refused = self._status.seconds = 0
        self.pipe.send(batch)

    def _start(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self.pipe, theirs = self._context.Pipe()
        arguments = (self._readers, theirs, self._cells, self._folder, self._seed)
        self._process = self._context.Process(target=child.serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def collect(self, note: Callable[[Finding], None], tallies: dict[str, Tally]) -> None:
        """Take what the child has sent, and take care of one that died or hangs."""
        assert self.batch is not None
        name, first, last = self.batch
        tally = tallies[name]
        try:
            while self.pipe.poll():
                sent = self.pipe.recv()
                if sent is None:
                    self._add(tally, last - first)
                    self.batch = None
                    return
                if sent[0] == "leave":
                    self._resume(tally, sent[1])
                    return
                note(Finding(*sent))
        except (EOFError, ConnectionResetError):
            self._process.join()
            self._died(note, tally, self._process.exitcode)
            return
        if self._stuck():
            self._process.kill()
            self._process.join()
            self._died(note, tally, -signal.SIGPROF)

    def _died(self, note: Callable[[Finding], None], tally: Tally, code: int | None) -> None:
        assert self.batch is not None
        index = self._status.index
        if self._status.reading:
            name = signal.Signals(-code).name if code and code < 0 else f"exit {code}"
            kind = "hang" if name == "SIGPROF" else name
            files = {path.name: path.read_bytes() for path in (self._folder / "case").iterdir()}
            case = Case(self.batch[0], index, files, "")
            note(Finding(case, Outcome(kind, self._fault())))
        self._resume(tally, index + 1)

    def _resume(self, tally: Tally, index: int) -> None:
        """Go on with the rest of the batch in a new child."""
        assert self.batch is not None
        name, first, last = self.batch
        self._add(tally, index - first)
        self.stop()
        self.batch = (name, index, last)
        self._send(self.batch)

    def _add(self, tally: Tally, cases: int) -> None:
        tally.cases += cases
        tally.accepted += self._status.accepted
        tally.refused += self._status.refused
        tally.seconds += self._status.seconds

    def _fault(self) -> str:
        """The innermost line of the package when the process was killed."""
        text = (self._folder / "fault.txt").read_text(errors="replace")
        ours = re.search(r'File ".*?/rawlsgcn/(.*?)", line \d+ in (\S+)', text)
        return f"{ours[1]}:{ours[2]}" if ours else "outside"

    def _stuck(self) -> bool:
        now = time.monotonic()
        if self._status.index != self._last[0]:
            self._last = (self._status.index, now)
        return now - self._last[1] > _PATIENCE

    def stop(self) -> None:
        """End the child, which has nothing to lose."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.pipe.close()
            self._process = None
