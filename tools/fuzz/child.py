"""The process in which damaged files are read: killed by them or not, its parent lives on."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import resource
import signal
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rawlsgcn._core.machine import peak_resident_bytes

from .reader import Case, Files, Reader
from .verdict import Outcome, judge

SECONDS = 5.0
"""Processor time that one input may take."""
GROWTH = 1 << 30
"""Bytes by which one small input may let the process grow."""
_LEAK = 300 << 20
"""Bytes of growth after which the process is replaced, whatever they are of."""


class Status:
    """What the parent can still see when the child is gone: a few numbers in shared memory."""

    SIZE = 5

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    index = property(lambda self: int(self._cells[0]), lambda self, v: self._set(0, v))
    reading = property(lambda self: bool(self._cells[1]), lambda self, v: self._set(1, v))
    seconds = property(lambda self: float(self._cells[2]), lambda self, v: self._set(2, v))
    accepted = property(lambda self: int(self._cells[3]), lambda self, v: self._set(3, v))
    refused = property(lambda self: int(self._cells[4]), lambda self, v: self._set(4, v))

    def _set(self, place: int, value: float) -> None:
        self._cells[place] = value


class Folder:
    """The folder that the inputs are laid into, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._there: Files = {}

    def lay(self, files: Files) -> None:
        for name in self._there.keys() - files.keys():
            (self.path / name).unlink()
        for name, content in files.items():
            if self._there.get(name) != content:
                path = self.path / name
                path.unlink(missing_ok=True)  # an old one may still be mapped
                path.write_bytes(content)
        self._there = dict(files)


def serve(
    readers: dict[str, Reader], pipe: Connection, cells: Any, folder: Path, seed: int
) -> None:
    """Take batches (reader, first, last) from ``pipe`` and answer with outcomes, then None."""
    _limit(folder)
    status, laid = Status(cells), Folder(folder / "case")
    laid.path.mkdir()
    start = peak = peak_resident_bytes()
    parent = os.getppid()
    while True:
        while not pipe.poll(5.0):
            if os.getppid() != parent:
                return
        name, first, last = pipe.recv()
        reader = readers[name]
        _ = reader.seeds
        began = time.process_time()
        for index in range(first, last):
            status.index, status.reading = index, False
            case = reader.case(seed, index)
            laid.lay(case.files)
            status.reading = True
            outcome = run(reader, case, laid.path)
            status.reading = False
            status.seconds = time.process_time() - began
            now = peak_resident_bytes()
            if now - peak > GROWTH and not outcome.wrong:
                outcome = Outcome("memory", outcome.where, f"{(now - peak) >> 20} MB more")
            peak = now
            if outcome.kind == "accepted":
                status.accepted += 1
            elif outcome.kind == "refused":
                status.refused += 1
            else:
                pipe.send((case, outcome))
            if peak - start > _LEAK:
                pipe.send(("leave", index + 1))
                return
        pipe.send(None)


def run(reader: Reader, case: Case, folder: Path) -> Outcome:
    """Read one input under the limit of time, which ends the process."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return judge(reader, folder, case.files)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit(folder: Path) -> None:
    os.chdir(folder)
    os.environ["http_proxy"] = os.environ["https_proxy"] = "http://127.0.0.1:9"  # no downloads
    warnings.simplefilter("ignore")
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(null, stream)
    log = (folder / "fault.txt").open("w")
    faulthandler.enable(log, all_threads=False)
    faulthandler.register(signal.SIGPROF, log, all_threads=False, chain=True)
    limit_memory()
    gc.freeze()


def limit_memory() -> None:
    """Let this process grow by little more than one input may take."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = Path("/proc/self/statm")
    if pages.exists():
        size = int(pages.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + GROWTH * 3 // 2, resource.RLIM_INFINITY))
