"""Run tasks one after another, or several at once in processes of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch
from rich.console import Console

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.experiments.fitting import described
from rawlsgcn.reporting.progress import progress
from rawlsgcn.training.whole_graph import PartialProgress

from .records import Options, Task, run_task

#: Relative cost of a model, for the time estimate.
COST = {"auto": 2, "gcn": 1, "appnp": 3, "graphsage": 2, "gat": 12}
STEPS = 1000


def run_tasks(tasks: Sequence[Task], options: Options, jobs: int, console: Console) -> None:
    """Run tasks one after another, or several at once in processes of their own."""
    total = STEPS * sum(COST[task.model] for task in tasks)
    with progress("training") as bar:
        if jobs == 1:
            done = 0
            for task in tasks:
                share = STEPS * COST[task.model]
                part = PartialProgress(described(bar, str(task)), done, share, total)
                said = run_task(task, options, progress=part)
                done += share
                bar(done, total, str(task))
                _print(console, task, said)
            return
        context = multiprocessing.get_context("spawn")
        threads = max(1, torch.get_num_threads() // jobs)
        pool = ProcessPoolExecutor(jobs, context, initializer=_limit, initargs=(threads,))
        try:
            futures = {pool.submit(run_task, task, options): task for task in tasks}
            done, waiting = 0, set(futures)
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    said = future.result()
                    done += STEPS * COST[futures[future].model]
                    bar(done, total, str(futures[future]))
                    _print(console, futures[future], said)
        except BaseException as error:
            workers = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
            if isinstance(error, BrokenProcessPool):
                raise RawlsError(
                    "a process ended, perhaps for lack of memory: use fewer --jobs"
                ) from error
            raise
        pool.shutdown()


def _limit(threads: int) -> None:
    """Begin a process: Ctrl-C is for the one that started it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)


def _print(console: Console, task: Task, record: dict[str, Any]) -> None:
    console.print(
        f"{task}: accuracy {record['accuracy']:.1f}, low degrees "
        f"{record['low_degree_accuracy']:.1f}, {record['seconds']:.0f} s",
        highlight=False,
    )
