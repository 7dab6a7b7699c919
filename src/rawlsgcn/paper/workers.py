"""The processes that train the trials, cell after cell, until all are done or time is up."""

from __future__ import annotations

import gc
import multiprocessing
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .heartbeats import heartbeat
from .plan import CHOICES, Cell, Point, diverged, score
from .studies import Claim, Studies, StudyContent
from .trials import TrainedPoint, train_points, train_timed

CHUNK = 7
"""At most so many points of the GCN family are trained together (with five seeds, 35 runs)."""
POLL_SECONDS = 1.0

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
    for cells, processes in ((others, workers), (timed, 1)):
        part = replace(work, cells=cells)
        if cells and processes == 1:
            _Worker(part, report).run()
        elif cells:
            _in_processes(part, processes, report)


def _in_processes(work: Work, workers: int, report: EventCallback) -> None:
    """Train cells in several processes, which report through a queue."""
    context = multiprocessing.get_context("spawn")
    reports: Any = context.Queue()
    cores = os.cpu_count() or 1
    processes = [
        context.Process(target=_run_in_process, args=(work, reports, os.getpid(), cores // workers))
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


def _run_in_process(work: Work, reports: Any, parent: int, threads: int) -> None:
    """Run in one process of several; it stops when its parent has ended."""
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

    _Worker(work, report).run()


class _Worker:
    """Trains what no other process trains."""

    def __init__(self, work: Work, report: EventCallback) -> None:
        self._work, self._report, self._studies = work, report, Studies(work.url)

    def run(self) -> None:
        """Train until every cell is done or time is up; wait for the others, in case they die."""
        left = list(self._work.cells)
        while left and not self._work.out_of_time:
            busy = []
            for cell in left:
                if not self._train_cell(cell):
                    busy.append(cell)
                if self._work.out_of_time:
                    return
            if len(busy) == len(left):
                time.sleep(POLL_SECONDS)
            left = busy

    def _train_cell(self, cell: Cell) -> bool:
        """Train a cell while it has free points; True once every point is finished or failed."""
        while True:
            claims = self._studies.claim(cell, CHUNK if cell.stacked else 1, self._work.since)
            content = self._studies.read(cell)
            if not claims:
                if content.running:
                    return False
                self._report("ended", cell.name, float(bool(content.failed)))
                return True
            self._report("began", cell.name, len(claims))
            try:
                with heartbeat(partial(self._studies.beat, claims)):
                    trained = self._train(cell, [claim.point for claim in claims])
                self._store(cell, claims, trained, content)
            except Exception as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                for claim in claims:
                    self._studies.fail(claim, reason)
                # What a failure, perhaps for lack of memory, left on the device.
                gc.collect()
                torch.cuda.empty_cache()
            except BaseException:
                for claim in claims:
                    self._studies.fail(claim)
                raise
            self._report("points", cell.name, len(claims))
            if self._work.out_of_time:
                return False

    def _train(self, cell: Cell, points: list[Point]) -> list[TrainedPoint]:
        device, root = self._work.device, self._work.root
        if cell.protocol == "efficiency":
            # A process of its own, so that its peak memory is that of this method alone.
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                return [pool.submit(train_timed, cell, points[0], device, root).result()]

        def progress(done: int, total: int, description: str | None = None) -> None:
            self._report("epochs", cell.name, done / max(1, total))

        return train_points(cell, points, device, root, progress)

    def _store(
        self, cell: Cell, claims: list[Claim], trained: list[TrainedPoint], content: StudyContent
    ) -> None:
        """Store figures, and node losses where the point may be chosen in the end.

        That point is the best one so far when it is stored; a quick search chooses among its last.
        """
        records = [*content.records.values(), *(each.record for each in trained)]
        best = {by: max(score(record, by) for record in records) for by in CHOICES.values()}
        for claim, each in zip(claims, trained, strict=True):
            keep = any(score(each.record, by) >= best[by] for by in best)
            if content.quick:
                keep = len(claim.point.seeds) == len(cell.seeds)
            keep = keep and not diverged(each.record)
            self._studies.finish(claim, each.record, each.nodes.pack() if keep else None)
