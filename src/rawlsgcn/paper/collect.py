"""From the studies to one JSON document: every cell, what was chosen, the verdicts, the claims."""

from __future__ import annotations

import statistics as stats
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.version import __version__
from ..graphs.catalog import CATALOG
from ..methods import find_method, method_names
from . import printed, verdict
from .claims import claims
from .node_scores import Nodes
from .plan import BASELINES, MAIN, PAPER_DATASETS, PARTS, Cell, Plan, best
from .store import Kept, Store
from .train import FIGURES

CHOICES = {"validation": "validation_accuracy", "test": "accuracy"}
"""How a point is chosen: by validation accuracy, or by test accuracy as the paper seems to."""


def collect(store: Store, plan: Plan) -> dict[str, Any]:
    """Every cell of the plan, and every other cell of the paper that the storage has."""
    planned = plan.cells()
    names = {cell.name for cell in planned}
    known = [name for name in (*MAIN, *BASELINES) if name in method_names()]
    whole = replace(
        plan,
        parts=PARTS,
        datasets=tuple(dict.fromkeys((*PAPER_DATASETS, *plan.datasets))),
        methods=tuple(dict.fromkeys((*known, *plan.methods))),
    )
    made = {cell.name for cell in store.matching(whole.cells())}
    cells, nodes = [], {}
    for cell in whole.cells():
        if cell.name not in made:
            if cell.name in names:
                cells.append(_described(cell, "not run", cell.quick))
            continue
        kept = store.kept(cell)
        shown = _cell(cell, kept)
        cells.append(shown)
        for choice, chosen in shown["chosen"].items():
            if chosen is not None and chosen["key"] in kept.nodes:
                packed = kept.nodes[chosen["key"]]
                nodes[cell.name, choice] = Nodes.unpack(packed)
    return {
        "rawlsgcn": __version__,
        "seeds": list(plan.seeds),
        "datasets": [],
        "figures": [],
        "cells": cells,
        "claims": claims(cells, nodes),
    }


def _described(cell: Cell, status: str, quick: bool) -> dict[str, Any]:
    graph = CATALOG.get(cell.dataset)
    if cell.protocol == "paper":
        paper: dict[str, Any] | None = printed.figures(cell.dataset, cell.method, cell.variant)
    elif cell.protocol == "efficiency" and cell.dataset in PAPER_DATASETS:
        paper = printed.efficiency(cell.method, cell.variant)
    else:
        paper = None
    searched = "first seed" if quick else "all seeds"
    return {
        "name": cell.name,
        "protocol": cell.protocol,
        "dataset": cell.dataset,
        "graph": cell.dataset if graph is None else graph.title,
        "method": cell.method,
        "title": find_method(cell.method).title,
        "variant": cell.variant,
        "grid": {name: list(values) for name, values in cell.grid.items()},
        "searched": searched if cell.grid else "nothing",
        "seeds": list(cell.seeds),
        "status": status,
        "reason": None,
        "paper": paper,
        "chosen": dict.fromkeys(CHOICES),
        "trials": [],
    }


def _cell(cell: Cell, kept: Kept) -> dict[str, Any]:
    points = cell.points(kept.quick, kept.records)
    missing = [point.key for point in points if point.key not in kept.records]
    failed = [kept.failed[key][0] for key in missing if key in kept.failed]
    status = "finished" if not missing else "failed" if len(failed) == len(missing) else "part"
    shown = _described(cell, status, kept.quick)
    shown["reason"] = failed[0] if failed else None
    done = [(point, kept.records[point.key]) for point in points if point.key in kept.records]
    shown["trials"] = [_trial(record) for _, record in done]
    full = [record for point, record in done if len(point.seeds) == len(cell.seeds)]
    keys = {id(record): point.key for point, record in done}
    if status in ("finished", "failed"):
        for choice, by in CHOICES.items():
            record = best(full, by)
            if record is None:
                continue
            chosen = _trial(record) | {"key": keys[id(record)]}
            chosen["verdict"] = verdict.verdicts(cell.protocol, chosen, shown["paper"])
            shown["chosen"][choice] = chosen
    if status == "finished" and None in shown["chosen"].values():
        shown["status"] = "diverged"
        shown["reason"] = "every setting to choose from had a run that ended in NaN or infinity"
    return shown


def _trial(record: Mapping[str, Any]) -> dict[str, Any]:
    names = ("values", "seeds", "settings", "device", "parameters", "seconds", "peak_memory_mb")
    shown = {name: record[name] for name in names}
    if "times" in record:
        times = record["times"]
        shown |= {
            "times": times,
            "preparing_seconds": stats.median(times["prepare"]),
            "training_seconds": stats.median(times["train"]),
        }
    return shown | {name: spread(record["runs"][name]) for name in FIGURES}


def spread(runs: Sequence[float | None]) -> dict[str, Any]:
    """Mean and population standard deviation; none where a run has no number."""
    numbers = [run for run in runs if run is not None]
    if len(numbers) < len(runs):
        return {"mean": None, "std": None, "runs": list(runs)}
    return {"mean": stats.fmean(numbers), "std": stats.pstdev(numbers), "runs": numbers}
