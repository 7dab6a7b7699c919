"""``reproduce``: check everything, train what is missing, collect the results and write them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .._core import __version__
from .._core.errors import RawlsError
from .._core.machine import machine, pick_device
from .._core.threads import fork_safe_threads
from ..graphs import load, statistics
from ..graphs.catalog import CATALOG, SYNTHETIC, data_root, datasets
from ..reporting.progress import spinner
from .agreement import DIFFERS, NEW, REPRODUCED, published
from .figures import paper_figures
from .output import (
    RESULTS,
    SIGNIFICANCE,
    STUDIES,
    check_folder,
    read_document,
    read_results,
    write_results,
    write_significance,
)
from .plan import MAIN, Plan
from .results import collect
from .significance import DRAWS, bias_significance
from .studies import Studies
from .terminal import live_progress
from .workers import Work, run_cells


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
    """Run a plan and write its results into a folder.

    Args:
        plan: What to run.
        out: The folder for the results; new, empty, or that of an earlier run.
        storage: A URL for the studies (by default SQLite in ``out``).
        resume: Continue with studies that exist; what has failed is tried again.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        workers: How many processes share the work.
        budget: Begin nothing new after so many seconds.
        root: The folder of the datasets.
        command: The command line, to be shown with the results.

    Returns:
        What ``results.json`` holds, if the plan has parts other than ``significance``; and under
        ``"significance"``, if that is a part, what ``significance.json`` holds (None if there was
        no time for it).

    Raises:
        RawlsError: Before anything is trained, if a dataset is missing, the folder has something
            else in it, the storage cannot be used or has studies made with other settings, or
            results exist and ``resume`` is false.
    """
    out = Path(out)
    began = time.time()
    until = None if budget is None else began + budget
    if workers < 1:
        raise RawlsError("workers must be at least 1")
    where = str(pick_device(device))
    check_folder(out)
    _check_datasets(plan, root)
    tested = read_document(out / SIGNIFICANCE) if "significance" in plan.parts else None
    if tested is not None and not (resume and _is_of(tested, plan)):
        cure = "use the same settings" if resume else "add --resume to keep them"
        raise RawlsError(f"{out} already has significance tests: {cure}, or choose another --out")
    results: dict[str, Any] = {}
    if set(plan.parts) - {"significance"}:
        url = storage or _sqlite(out)
        studies, cells = Studies(url), plan.cells()
        studies.check(cells, resume)
        before = read_results(out) or {"datasets": [], "figures": [], "made": []}
        this = {"command": command, "machine": machine(pick_device(device))}
        kept = {name: before[name] for name in ("datasets", "figures")}
        kept["made"] = [*(made for made in before["made"] if made != this), this]
        if not (out / RESULTS).exists():
            # From here on the folder is known as ours, whatever happens.
            write_results(collect(studies, plan) | kept, out)
        work = Work(url, tuple(cells), where, root, began, until)
        points = sum(len(cell.combinations()) for cell in cells)
        points -= sum(len(studies.read(cell).records) for cell in studies.existing(cells))
        with live_progress(cells, max(1, points)) as report:
            run_cells(work, workers, report)
        results = collect(studies, plan) | kept
        if "datasets" in plan.parts:
            rows = {row["dataset"]: row for row in (*before["datasets"], *_statistics(plan, root))}
            results["datasets"] = [rows[name] for name in datasets() if name in rows]
        if "figures" in plan.parts and not work.out_of_time:
            results["figures"] = paper_figures(results["cells"], plan, where, root, out)
        write_results(results, out)
    if "significance" in plan.parts:
        if tested is None and (until is None or time.time() < until):
            with spinner("testing significance") as progress:
                tested = bias_significance(
                    plan.datasets,
                    _significance_methods(plan),
                    seeds=plan.seeds,
                    evaluate=plan.evaluate,
                    device=where,
                    root=root,
                    command=command,
                    progress=progress,
                    **plan.changes,
                )
            write_significance(tested, out)
        results["significance"] = tested
    return results


def _sqlite(out: Path) -> str:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RawlsError(f"cannot write into {out}: {error.strerror or error}") from error
    return f"sqlite:///{(out / STUDIES).resolve()}"


def unfinished(results: dict[str, Any], plan: Plan) -> tuple[list[str], list[str]]:
    """Return which cells of a plan have no results.

    Args:
        results: What :func:`reproduce` returned.
        plan: The plan that was run.

    Returns:
        The names of the cells that failed, and of those that are not finished.
    """
    names = {cell.name for cell in plan.cells()}
    cells = [cell for cell in results.get("cells", ()) if cell["name"] in names]
    failed = [cell["name"] for cell in cells if cell["status"] == "failed"]
    left = [cell["name"] for cell in cells if cell["status"] in ("part", "not run")]
    if "significance" in plan.parts and results.get("significance") is None:
        left.append("significance")
    return failed, left


def _significance_methods(plan: Plan) -> tuple[str, ...]:
    """GCN, and those of the two methods that the plan has."""
    return tuple(name for name in MAIN if name == "gcn" or name in plan.chosen_methods)


def _is_of(document: dict[str, Any], plan: Plan) -> bool:
    """Whether kept significance tests are those of a plan, made by this version."""
    methods = len(_significance_methods(plan))
    graphs = [(graph["dataset"], len(graph["methods"])) for graph in document["graphs"]]
    settings = [document[name] for name in ("rawlsgcn", "seeds", "evaluate", "draws")]
    same = settings == [__version__, len(plan.seeds), plan.evaluate, DRAWS]
    return same and graphs == [(dataset, methods) for dataset in plan.datasets]


def _check_datasets(plan: Plan, root: Path | None) -> None:
    """Raise an error before any work for a dataset that is missing and cannot be downloaded."""
    for name in plan.datasets:
        if name != SYNTHETIC and not CATALOG[name].on_disk(root):
            try:
                load(name, root=root, sparse=True)
            except RawlsError as error:
                missing = f"dataset missing in {data_root(root)}, nothing was run: {error}"
                raise RawlsError(missing) from error


def _statistics(plan: Plan, root: Path | None) -> list[dict[str, Any]]:
    """Return the rows of Table 1."""
    rows = []
    for name in plan.datasets:
        ours = statistics(load(name, root=root, sparse=True)).to_dict()
        paper = published()["datasets"].get(name)
        verdict = NEW
        if paper:
            figures = {key: value for key, value in paper.items() if value is not None}
            verdict = REPRODUCED if figures.items() <= ours.items() else DIFFERS
        title = CATALOG[name].title if name in CATALOG else name
        rows.append(
            {"dataset": name, "graph": title, "ours": ours, "paper": paper, "verdict": verdict}
        )
    return rows
