"""The door: everything is checked, then worked on, then collected and written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._core.errors import RawlsError
from .._core.machine import machine, pick_device
from .._core.threads import fork_safe_threads
from ..graphs import load, statistics
from ..graphs.catalog import CATALOG, SYNTHETIC, data_root, datasets
from . import printed, verdict
from .collect import collect
from .output import RESULTS, STUDIES, check_folder, earlier, write
from .pictures import paper_figures
from .plan import Cell, Plan
from .progress import live
from .run import Work, run
from .store import Store


@fork_safe_threads()
def reproduce(
    plan: Plan,
    out: str | Path,
    *,
    storage: str | None = None,
    resume: bool = False,
    device: str = "auto",
    workers: int = 1,
    budget: float | None = None,
    root: Path | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Run a plan, write its results into ``out`` and give the results document back.

    Args:
        plan: What to run.
        out: The folder for the results; new, empty, or that of an earlier run.
        storage: A URL for the studies (by default SQLite in ``out``).
        resume: Go on with studies that are there; what has failed is tried again.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        workers: How many processes share the work.
        budget: Begin nothing new after so many seconds.
        root: Where the datasets lie.
        command: What was typed, to be shown with the results.
    """
    out = Path(out)
    began = time.time()
    where = pick_device(device)
    if workers < 1:
        raise RawlsError("at least one worker is needed")
    check_folder(out)
    _check_datasets(plan, root)
    cells = plan.cells()
    if storage is None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RawlsError(f"cannot write into {out}: {error.strerror or error}") from error
        storage = f"sqlite:///{(out / STUDIES).resolve()}"
    store = Store(storage)
    store.check(cells, resume)
    before = earlier(out)
    if not (out / RESULTS).exists():
        # From here on the folder is known as ours, whatever happens.
        write(_document(store, plan, before, machine(where), command), out)
    until = None if budget is None else began + budget
    work = Work(storage, tuple(cells), str(where), root, began, until)
    with live(cells, _points(store, cells)) as report:
        run(work, workers, report)
    results = _document(store, plan, before, machine(where), command)
    if "datasets" in plan.parts:
        rows = {row["dataset"]: row for row in (*before["datasets"], *_statistics(plan, root))}
        results["datasets"] = [rows[name] for name in datasets() if name in rows]
    if "figures" in plan.parts and not work.out_of_time:
        results["figures"] = paper_figures(results["cells"], plan, str(where), root, out)
    write(results, out)
    return results


def undone(results: dict[str, Any], plan: Plan) -> tuple[list[str], list[str]]:
    """The names of the plan's cells that failed, and of those that are not finished."""
    names = {cell.name for cell in plan.cells()}
    cells = [cell for cell in results["cells"] if cell["name"] in names]
    failed = [cell["name"] for cell in cells if cell["status"] == "failed"]
    left = [cell["name"] for cell in cells if cell["status"] in ("part", "not run")]
    return failed, left


def _document(
    store: Store, plan: Plan, before: dict[str, Any], host: dict[str, Any], command: str
) -> dict[str, Any]:
    results = collect(store, plan)
    results |= {name: before[name] for name in ("datasets", "figures")}
    this = {"command": command, "machine": host}
    results["made"] = [*(made for made in before["made"] if made != this), this]
    return results


def _check_datasets(plan: Plan, root: Path | None) -> None:
    """What is missing and cannot be downloaded is told before any work."""
    for name in plan.datasets:
        if name != SYNTHETIC and not CATALOG[name].on_disk(root):
            try:
                load(name, root=root, sparse=True)
            except RawlsError as error:
                folder = data_root(root)
                raise RawlsError(
                    f"dataset missing in {folder}, nothing was run: {error}"
                ) from error


def _points(store: Store, cells: Sequence[Cell]) -> int:
    """How many trials are still to be done, for the bar."""
    total = sum(len(cell.combinations()) for cell in cells)
    for cell in store.matching(cells):
        total -= len(store.kept(cell).records)
    return max(1, total)


def _statistics(plan: Plan, root: Path | None) -> list[dict[str, Any]]:
    """Table 1."""
    rows = []
    for name in plan.datasets:
        ours = statistics(load(name, root=root, sparse=True)).to_dict()
        paper = printed.statistics(name)
        verdicts = {
            verdict.exactly(ours[figure], value)
            for figure, value in (paper or {}).items()
            if value is not None
        }
        title = CATALOG[name].title if name in CATALOG else name
        known = verdict.REPRODUCED if verdicts == {verdict.REPRODUCED} else verdict.DIFFERS
        rows.append(
            {
                "dataset": name,
                "graph": title,
                "ours": ours,
                "paper": paper,
                "verdict": known if paper else verdict.NEW,
            }
        )
    return rows
