"""The work itself: cell after cell, by one process or several, until done or out of time."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .plan import Cell, diverged, score
from .store import Claim, Kept, Store
from .train import Trained, measure, train_points

CHUNK = 7
"""At most so many points of the GCN family are trained as one (with five seeds, 35 runs)."""
LOOK_AGAIN_SECONDS = 1.0

# Called with a kind of event, the cell's name and a number: "began" with the points claimed,
# "epochs" with the share of their epochs done, "points" with those done, "ended" with 1 for failed.
Report = Callable[[str, str, float], None]


@dataclass(frozen=True)
class Work:
    """What a worker is told; it can be sent to another process."""

    url: str
    cells: tuple[Cell, ...]
    device: str
    root: Path | None
    since: float
    until: float | None

    @property
    def out_of_time(self) -> bool:
        return self.until is not None and time.time() >= self.until


def run(work: Work, workers: int, report: Report) -> None:
    """Do all cells: those that are timed last and alone, the others by ``workers`` processes."""
    timed = tuple(cell for cell in work.cells if cell.protocol == "efficiency")
    others = tuple(cell for cell in work.cells if cell.protocol != "efficiency")
    if workers == 1:
        _work(_part(work, others), report)
    else:
        _spread(_part(work, others), workers, report)
    _work(_part(work, timed), report)


def _part(work: Work, cells: tuple[Cell, ...]) -> Work:
    return Work(work.url, cells, work.device, work.root, work.since, work.until)


def _work(work: Work, report: Report) -> None:
    """Take what nobody has taken; where others are at work wait, in case they die."""
    if not work.cells:
        return
    store = Store(work.url)
    left = list(work.cells)
    while left and not work.out_of_time:
        busy = []
        for cell in left:
            if not _do(store, work, cell, report):
                busy.append(cell)
            if work.out_of_time:
                return
        if len(busy) == len(left):
            time.sleep(LOOK_AGAIN_SECONDS)
        left = busy


def _spread(work: Work, workers: int, report: Report) -> None:
    """The same by several processes, whose reports come back through a queue."""
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
    """One process of several; without its parent nobody waits for it, and it stops."""
    import torch

    torch.set_num_threads(max(1, threads))
    last = 0.0

    def report(kind: str, name: str, number: float) -> None:
        nonlocal last
        if os.getppid() != parent:
            raise SystemExit(1)
        # Epochs go by faster than anybody can read.
        if kind != "epochs" or time.monotonic() - last > 0.2:
            last = time.monotonic()
            reports.put((kind, name, number))

    _work(work, report)


def _do(store: Store, work: Work, cell: Cell, report: Report) -> bool:
    """Work on a cell as long as it has free points; whether all of it is done or failed."""
    while True:
        kept = store.kept(cell)
        limit = CHUNK if cell.together else 1
        claims = store.claim(cell, kept, limit, work.since)
        if not claims:
            after = store.kept(cell)
            if after.running:
                return False
            report("ended", cell.name, float(bool(after.failed)))
            return True
        report("began", cell.name, len(claims))
        _train(store, work, cell, claims, kept, report)
        if work.out_of_time:
            return False


def _train(
    store: Store, work: Work, cell: Cell, claims: list[Claim], kept: Kept, report: Report
) -> None:
    """Train the claimed points and tell their figures; a failure is told with its reason."""
    try:
        with store.beating(claims):
            points = [claim.point for claim in claims]
            if cell.protocol == "efficiency":
                # A process of its own, so that its peak memory is that of this method alone.
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    asked = pool.submit(measure, cell, points[0], work.device, work.root)
                    done = [asked.result()]
            else:
                done = train_points(
                    cell,
                    points,
                    work.device,
                    work.root,
                    lambda done, total, _=None: report("epochs", cell.name, done / max(1, total)),
                )
        _tell(store, cell, claims, done, kept)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        for claim in claims:
            store.fail(claim, reason)
        _forget_memory()
    except BaseException:
        for claim in claims:
            store.release(claim)
        raise
    report("points", cell.name, len(claims))


def _tell(store: Store, cell: Cell, claims: list[Claim], done: list[Trained], kept: Kept) -> None:
    """Tell the figures, and the nodes of points that may be chosen: the point that is chosen in
    the end was the best so far when it was told. A quick search keeps what it ends with."""
    records = [*kept.records.values(), *(trained.record for trained in done)]
    best = {
        by: max(score(record, by) for record in records)
        for by in ("validation_accuracy", "accuracy")
    }
    for claim, trained in zip(claims, done, strict=True):
        keep = any(score(trained.record, by) >= best[by] for by in best)
        if kept.quick:
            keep = len(claim.point.seeds) == len(cell.seeds)
        keep = keep and not diverged(trained.record)
        store.finish(claim, trained.record, trained.nodes.pack() if keep else None)


def _forget_memory() -> None:
    """After a failure, which may have been one of memory, the next cell begins with all of it."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
