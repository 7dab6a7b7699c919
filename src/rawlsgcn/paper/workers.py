"""The processes that train the trials, cell after cell, until all are done or time is up."""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .plan import CHOICES, Cell, diverged, score
from .studies import Claim, Studies, StudyContent
from .trials import train_points, train_timed

CHUNK = 7
"""At most so many points of the GCN family are trained together (with five seeds, 35 runs)."""
POLL_SECONDS, HEARTBEAT_SECONDS = 1.0, 20.0

# Called with a kind of event, the cell's name and a number: "began" with the points claimed,
# "epochs" with the share of their epochs done, "points" with those done, "ended" with 1 for failed.
EventCallback = Callable[[str, str, float], None]


@dataclass(frozen=True)
class Work:
    """What a worker needs to know; it can be sent to another process.

    ``since`` is when the run began, ``until`` when nothing new may begin (seconds of the epoch).
    """

    url: str
    cells: tuple[Cell, ...]
    device: str
    root: Path | None
    since: float
    until: float | None

    @property
    def out_of_time(self) -> bool:
        """Whether nothing new may begin."""
        return self.until is not None and time.time() >= self.until


def run_cells(work: Work, workers: int, report: EventCallback) -> None:
    """Train all cells: the timed ones last and alone, the others in ``workers`` processes."""
    timed = tuple(cell for cell in work.cells if cell.protocol == "efficiency")
    others = tuple(cell for cell in work.cells if cell.protocol != "efficiency")
    if workers == 1:
        _work(replace(work, cells=others), report)
    else:
        _in_processes(replace(work, cells=others), workers, report)
    _work(replace(work, cells=timed), report)


def _work(work: Work, report: EventCallback) -> None:
    """Train what no other process trains; wait for the others, in case they die."""
    if not work.cells:
        return
    studies = Studies(work.url)
    left = list(work.cells)
    while left and not work.out_of_time:
        busy = []
        for cell in left:
            if not _train_cell(studies, work, cell, report):
                busy.append(cell)
            if work.out_of_time:
                return
        if len(busy) == len(left):
            time.sleep(POLL_SECONDS)
        left = busy


def _in_processes(work: Work, workers: int, report: EventCallback) -> None:
    """Do the same in several processes, which report through a queue."""
    context = multiprocessing.get_context("spawn")
    reports: Any = context.Queue()
    cores = os.cpu_count() or 1
    processes = [
        context.Process(target=_worker, args=(work, reports, os.getpid(), cores // workers))
        for _ in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            try:
                report(*reports.get(timeout=0.2))
            except queue.Empty:
                continue
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()


def _worker(work: Work, reports: Any, parent: int, threads: int) -> None:
    """Run in one process of several; it stops when its parent has ended."""
    import torch

    torch.set_num_threads(max(1, threads))
    last = 0.0

    def report(kind: str, name: str, number: float) -> None:
        nonlocal last
        if os.getppid() != parent:
            raise SystemExit(1)
        # Epochs pass faster than anybody can read.
        if kind != "epochs" or time.monotonic() - last > 0.2:
            last = time.monotonic()
            reports.put((kind, name, number))

    _work(work, report)


def _train_cell(studies: Studies, work: Work, cell: Cell, report: EventCallback) -> bool:
    """Train a cell while it has free points; True once every point is finished or failed."""
    while True:
        claims = studies.claim(cell, CHUNK if cell.stacked else 1, work.since)
        content = studies.read(cell)
        if not claims:
            if content.running:
                return False
            report("ended", cell.name, float(bool(content.failed)))
            return True
        report("began", cell.name, len(claims))
        _train_claims(studies, work, cell, claims, content, report)
        if work.out_of_time:
            return False


def _train_claims(
    studies: Studies,
    work: Work,
    cell: Cell,
    claims: list[Claim],
    content: StudyContent,
    report: EventCallback,
) -> None:
    """Train the claimed points and store their figures, or the reason of a failure."""
    points = [claim.point for claim in claims]
    try:
        with _heartbeat(studies, claims):
            if cell.protocol == "efficiency":
                # A process of its own, so that its peak memory is that of this method alone.
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    future = pool.submit(train_timed, cell, points[0], work.device, work.root)
                    trained = [future.result()]
            else:
                trained = train_points(
                    cell,
                    points,
                    work.device,
                    work.root,
                    lambda done, total, _=None: report("epochs", cell.name, done / max(1, total)),
                )
        # Node losses are kept where the point may be chosen in the end: the best one so far, and
        # of a quick search, which chooses among its last points, each of these.
        records = [*content.records.values(), *(each.record for each in trained)]
        best = {by: max(score(record, by) for record in records) for by in CHOICES.values()}
        for claim, each in zip(claims, trained, strict=True):
            keep = any(score(each.record, by) >= best[by] for by in best)
            if content.quick:
                keep = len(claim.point.seeds) == len(cell.seeds)
            keep = keep and not diverged(each.record)
            studies.finish(claim, each.record, each.nodes.pack() if keep else None)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        for claim in claims:
            studies.fail(claim, reason)
        _free_memory()
    except BaseException:
        for claim in claims:
            studies.fail(claim)
        raise
    report("points", cell.name, len(claims))


@contextmanager
def _heartbeat(studies: Studies, claims: list[Claim]) -> Iterator[None]:
    """Write a heartbeat into the claimed trials every 20 seconds while the context lasts."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            with suppress(Exception):  # the storage is out of reach: the next beat tries again
                studies.beat(claims)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _free_memory() -> None:
    """Free what a failure, perhaps for lack of memory, left on the device."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
