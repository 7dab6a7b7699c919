"""A cell's points trained and judged: graphs and settings in, records to keep out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.progress import ProgressCallback, no_progress
from ..experiments.fitting import evaluate_runs, prepare_inputs
from ..graphs import load
from ..graphs.splits import evaluate_on
from ..methods import find_method
from ..training import Job, train_runs
from .node_scores import Nodes
from .plan import Cell, Point, diverged

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..experiments.result import Result

FIGURES = (
    *("accuracy", "bias", "calibrated_bias", "low_degree_accuracy", "high_degree_accuracy"),
    *("validation_accuracy",),
)


@dataclass(frozen=True)
class Trained:
    """A point's record, and what its evaluated nodes were, to be kept if it may be chosen."""

    record: dict[str, Any]
    nodes: Nodes


def train_points(
    cell: Cell,
    points: Sequence[Point],
    device: str,
    root: Path | None,
    progress: ProgressCallback = no_progress,
) -> list[Trained]:
    """Train all runs of the points as one and judge each point."""
    graph = judged_graph(cell.dataset, cell.evaluate, root)
    method = find_method(cell.method)
    base = method.configure(cell.changes)
    settings = [method.configure({**cell.changes, **point.values}) for point in points]
    inputs = prepare_inputs(graph, base, device)
    jobs = [
        Job(own, seed) for own, point in zip(settings, points, strict=True) for seed in point.seeds
    ]
    runs, took = train_runs(method, inputs, jobs, progress=progress)
    share = {part: value / len(points) for part, value in took.items()}
    done, at = [], 0
    for own, point in zip(settings, points, strict=True):
        mine = runs[at : at + len(point.seeds)]
        at += len(point.seeds)
        result = evaluate_runs(graph, inputs, method, own, list(point.seeds), mine, share)
        done.append(Trained(record_of(point, result), Nodes.of(result)))
    return done


def measure(cell: Cell, point: Point, device: str, root: Path | None) -> Trained:
    """Every seed's run alone, timed, after a short one that warms the machine up (Table 4)."""
    graph = judged_graph(cell.dataset, cell.evaluate, root)
    method = find_method(cell.method)
    settings = method.configure(cell.changes)
    short = replace(settings, epochs=min(2, settings.epochs))
    train_runs(method, prepare_inputs(graph, settings, device), [Job(short, point.seeds[0])])
    runs, memory = [], []
    times: dict[str, list[float]] = {"prepare": [], "train": []}
    for seed in point.seeds:
        inputs = prepare_inputs(graph, settings, device)
        (run,), took = train_runs(method, inputs, [Job(settings, seed)])
        alone = evaluate_runs(graph, inputs, method, settings, [seed], [run], took)
        runs.append(run)
        for part, seconds in times.items():
            seconds.append(took[part])
        memory.append(alone.peak_memory_mb)
    result = evaluate_runs(graph, inputs, method, settings, list(point.seeds), runs, took)
    record = record_of(point, result)
    record |= {"times": times, "peak_memory_mb": memory[0]}
    return Trained(record, Nodes.of(result))


@lru_cache(maxsize=1)
def judged_graph(dataset: str, evaluate: str, root: Path | None) -> Data:
    """The graph, whose test nodes are those to judge: "test" or "all"."""
    return evaluate_on(load(dataset, root=root, sparse=True), evaluate)


def record_of(point: Point, result: Result) -> dict[str, Any]:
    """What is kept of a trial: figures by seed, settings, and what it cost."""
    return {
        "values": dict(point.values),
        "seeds": list(point.seeds),
        "settings": result.settings,
        "device": result.device,
        "parameters": result.parameters,
        "seconds": result.seconds,
        "peak_memory_mb": result.peak_memory_mb,
        "runs": _finite({name: getattr(result, name).runs for name in FIGURES}),
        "notes": result.notes,
    }


def _finite(runs: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    """JSON has no NaN. Of a diverged run nothing is kept, since its accuracy means nothing."""
    kept = {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in runs.items()
    }
    for run in range(len(kept["accuracy"])):
        if diverged({"runs": {name: [values[run]] for name, values in kept.items()}}):
            for values in kept.values():
                values[run] = None
    return kept
