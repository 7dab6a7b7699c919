"""The results document: every cell with its chosen settings, verdicts and claims, as JSON."""

from __future__ import annotations

import statistics as stats
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core import __version__
from ..graphs.catalog import CATALOG
from ..methods import find_method, method_names
from .agreement import published, published_figures, verdicts
from .claims import claims
from .plan import BASELINES, CHOICES, FIGURES, MAIN, PAPER_DATASETS, PARTS, Cell, Plan, best
from .studies import Studies, StudyContent
from .trials import NodeLosses


def collect(studies: Studies, plan: Plan) -> dict[str, Any]:
    """Collect every cell of the plan, and every other cell of the paper that has a study."""
    planned = {cell.name for cell in plan.cells()}
    known = [name for name in (*MAIN, *BASELINES) if name in method_names()]
    whole = replace(
        plan,
        parts=PARTS,
        datasets=tuple(dict.fromkeys((*PAPER_DATASETS, *plan.datasets))),
        methods=tuple(dict.fromkeys((*known, *plan.methods))),
    ).cells()
    existing = {cell.name for cell in studies.existing(whole)}
    cells, nodes = [], {}
    for cell in whole:
        if cell.name in existing:
            content = studies.read(cell)
            cells.append(_cell(cell, content))
            for choice, chosen in cells[-1]["chosen"].items():
                if chosen is not None and chosen["key"] in content.nodes:
                    nodes[cell.name, choice] = NodeLosses.unpack(content.nodes[chosen["key"]])
        elif cell.name in planned:
            cells.append(_cell(cell, StudyContent(cell.quick)) | {"status": "not run"})
    return {
        "rawlsgcn": __version__,
        "seeds": list(plan.seeds),
        "datasets": [],
        "figures": [],
        "cells": cells,
        "claims": claims(cells, nodes),
    }


def _cell(cell: Cell, content: StudyContent) -> dict[str, Any]:
    """Describe a cell by what its study holds, with the settings chosen in each way."""
    entry = CATALOG.get(cell.dataset)
    paper: dict[str, Any] | None = None
    if cell.protocol == "paper":
        paper = published_figures(cell.dataset, cell.method, cell.variant)
    elif cell.protocol == "efficiency" and cell.dataset in PAPER_DATASETS:
        paper = published()["efficiency"].get(cell.method, {}).get(cell.variant)
    points = cell.points(content.quick, content.records)
    missing = [point.key for point in points if point.key not in content.records]
    failed = [content.failed[key][0] for key in missing if key in content.failed]
    status = "finished" if not missing else "failed" if len(failed) == len(missing) else "part"
    reason = failed[0] if failed else None
    done = {p.key: content.records[p.key] for p in points if p.key in content.records}
    full = [each | {"key": key} for key, each in done.items() if each["seeds"] == [*cell.seeds]]
    chosen: dict[str, Any] = dict.fromkeys(CHOICES)
    for choice, by in CHOICES.items():
        if status != "part" and (record := best(full, by)) is not None:
            trial = _trial(record) | {"key": record["key"]}
            chosen[choice] = trial | {"verdict": verdicts(cell.protocol, trial, paper)}
    if status == "finished" and None in chosen.values():
        status = "diverged"
        reason = "every setting to choose from had a run that ended in NaN or infinity"
    searched = "first seed" if content.quick else "all seeds"
    return {
        "name": cell.name,
        "protocol": cell.protocol,
        "dataset": cell.dataset,
        "graph": cell.dataset if entry is None else entry.title,
        "method": cell.method,
        "title": find_method(cell.method).title,
        "variant": cell.variant,
        "grid": {name: list(values) for name, values in cell.grid.items()},
        "searched": searched if cell.grid else "nothing",
        "seeds": list(cell.seeds),
        "status": status,
        "reason": reason,
        "paper": paper,
        "chosen": chosen,
        "trials": [_trial(record) for record in done.values()],
    }


def _trial(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trial's settings and cost, and the mean and deviation of its figures."""
    names = ("values", "seeds", "settings", "device", "parameters", "seconds", "peak_memory_mb")
    trial = {name: record[name] for name in names}
    if "times" in record:
        times = record["times"]
        trial |= {
            "times": times,
            "preparing_seconds": stats.median(times["prepare"]),
            "training_seconds": stats.median(times["train"]),
        }
    return trial | {name: _mean_and_std(record["runs"][name]) for name in FIGURES}


def _mean_and_std(runs: Sequence[float | None]) -> dict[str, Any]:
    """Return mean and population standard deviation, None where a run has no number."""
    numbers = [run for run in runs if run is not None]
    if len(numbers) < len(runs):
        return {"mean": None, "std": None, "runs": list(runs)}
    return {"mean": stats.fmean(numbers), "std": stats.pstdev(numbers), "runs": numbers}
