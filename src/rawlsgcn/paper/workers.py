"""The processes that train the trials, cell after cell, until all are done or time is up."""

from __future__ import annotations

import gc
import multiprocessing
import os
import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .heartbeats import heartbeat
from .plan import CHOICES, Cell, Point, diverged, score
from .studies import Studies, StudyContent, fail, finish
from .trials import TrainedPoint, train_points, train_timed

if TYPE_CHECKING:
    from optuna import Trial

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
            _run(part, report)
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

    _run(work, report)


def _run(work: Work, report: EventCallback) -> None:
    """Train until every cell is done or time is up; wait for the others, in case they die."""
    studies, left = Studies(work.url), list(work.cells)
    while left and not work.out_of_time:
        busy = [cell for cell in left if not _train_cell(cell, studies, work, report)]
        if len(busy) == len(left):
            time.sleep(POLL_SECONDS)
        left = busy


def _train_cell(cell: Cell, studies: Studies, work: Work, report: EventCallback) -> bool:
    """Train a cell while it has free points; True once every point is finished or failed."""

    def progress(done: int, total: int, description: str | None = None) -> None:
        report("epochs", cell.name, done / max(1, total))

    while not work.out_of_time:
        claimed = studies.claim(cell, CHUNK if cell.stacked else 1, work.since)
        content = studies.read(cell)
        if not claimed:
            if not content.running:
                report("ended", cell.name, float(bool(content.failed)))
            return not content.running
        report("began", cell.name, len(claimed))
        points = [Point.from_key(trial.user_attrs["point"]) for trial in claimed]
        try:
            with heartbeat(claimed):
                if cell.protocol == "efficiency":
                    # A process of its own, so that its peak memory is that of this method alone.
                    context = multiprocessing.get_context("spawn")
                    with ProcessPoolExecutor(1, mp_context=context) as pool:
                        done = pool.submit(train_timed, cell, points[0], work.device, work.root)
                        trained = [done.result()]
                else:
                    trained = train_points(cell, points, work.device, work.root, progress)
            _store(cell, claimed, trained, content)
        except Exception as error:
            for trial in claimed:
                fail(trial, " ".join(str(error).split()) or type(error).__name__)
            # What a failure, perhaps for lack of memory, left on the device.
            gc.collect()
            torch.cuda.empty_cache()
        except BaseException:
            for trial in claimed:
                fail(trial)
            raise
        report("points", cell.name, len(claimed))
    return False


def _store(
    cell: Cell, claimed: Sequence[Trial], trained: Sequence[TrainedPoint], content: StudyContent
) -> None:
    """Store figures, and node losses where the point may be chosen in the end.

    That point is the best one so far when it is stored; a quick search chooses among its last.
    """
    records = [*content.records.values(), *(record for record, _ in trained)]
    best = {by: max(score(record, by) for record in records) for by in CHOICES.values()}
    for trial, (record, nodes) in zip(claimed, trained, strict=True):
        keep = any(score(record, by) >= best[by] for by in best)
        if content.quick:
            keep = len(record["seeds"]) == len(cell.seeds)
        finish(trial, record, nodes.pack() if keep and not diverged(record) else None)
