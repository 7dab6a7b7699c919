"""The trials of a cell: its grid points trained, and what is kept of each."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._core.progress import ProgressCallback, no_progress
from ..evaluation.degree_bias import node_scores
from ..experiments.fitting import evaluate_runs, prepare_inputs
from ..graphs import load
from ..graphs.splits import evaluate_on
from ..methods import find_method
from ..training import Job, train_runs
from .plan import FIGURES, Cell, Point, diverged

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..experiments.result import Result

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NodeLosses:
    """The losses of the evaluated nodes and which of them were classified correctly.

    ``degree`` is (nodes,), the others are (seeds, nodes). ``calibrated`` are the losses after
    temperature scaling. They are stored in half precision, enough to test differences.
    """

    degree: npt.NDArray[np.int32]
    loss: Floats
    calibrated: Floats
    correct: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, result: Result) -> NodeLosses:
        """Compute them from the logits of a result."""
        evaluated = result.mask & (result.graph.y >= 0)
        y = result.graph.y[evaluated]
        loss, calibrated, correct = [], [], []
        for logits, metrics in zip(result.logits[:, evaluated], result.run_metrics, strict=True):
            losses, right = node_scores(logits.double(), y)
            scaled, _ = node_scores(logits.double() / metrics.temperature, y)
            loss.append(losses.numpy())
            calibrated.append(scaled.numpy())
            correct.append(right.numpy() > 0)
        degree = result.degree[evaluated].numpy().astype(np.int32)
        return cls(degree, np.stack(loss), np.stack(calibrated), np.stack(correct))

    def pack(self) -> str:
        """Return the arrays as text, for JSON; what is too large, or NaN, as the largest number."""
        limit, packed = float(np.finfo(np.float16).max), io.BytesIO()
        loss, calibrated = (
            np.nan_to_num(values, nan=limit, posinf=limit).clip(0, limit).astype(np.float16)
            for values in (self.loss, self.calibrated)
        )
        np.savez_compressed(
            packed, degree=self.degree, loss=loss, calibrated=calibrated, correct=self.correct
        )
        return base64.b85encode(packed.getvalue()).decode("ascii")

    @classmethod
    def unpack(cls, packed: str) -> NodeLosses:
        """Read what :meth:`pack` returned."""
        with np.load(io.BytesIO(base64.b85decode(packed)), allow_pickle=False) as kept:
            loss, calibrated = (kept[name].astype(float) for name in ("loss", "calibrated"))
            return cls(kept["degree"], loss, calibrated, kept["correct"])


# The record of a trial, and its node losses, which are kept if the point may be chosen.
TrainedPoint = tuple[dict[str, Any], NodeLosses]


def train_points(
    cell: Cell,
    points: Sequence[Point],
    device: str,
    root: Path | None,
    progress: ProgressCallback = no_progress,
) -> list[TrainedPoint]:
    """Train all runs of the points together and evaluate each point."""
    graph = evaluated_graph(cell.dataset, cell.evaluate, root)
    method = find_method(cell.method)
    base = method.configure(cell.changes)
    settings = [method.configure({**cell.changes, **point.values}) for point in points]
    inputs = prepare_inputs(graph, base, device)
    jobs = [
        Job(own, seed) for own, point in zip(settings, points, strict=True) for seed in point.seeds
    ]
    runs, seconds = train_runs(method, inputs, jobs, progress=progress)
    share = {step: value / len(points) for step, value in seconds.items()}
    trained, start = [], 0
    for own, point in zip(settings, points, strict=True):
        end = start + len(point.seeds)
        result = evaluate_runs(
            graph, inputs, method, own, list(point.seeds), runs[start:end], share
        )
        trained.append((_record(point, result), NodeLosses.of(result)))
        start = end
    return trained


def train_timed(cell: Cell, point: Point, device: str, root: Path | None) -> TrainedPoint:
    """Train and time the run of each seed alone, after a short one to warm up (Table 4)."""
    graph = evaluated_graph(cell.dataset, cell.evaluate, root)
    method = find_method(cell.method)
    settings = method.configure(cell.changes)
    short = replace(settings, epochs=min(2, settings.epochs))
    train_runs(method, prepare_inputs(graph, settings, device), [Job(short, point.seeds[0])])
    runs: list[Any] = []
    times: dict[str, list[float]] = {"prepare": [], "train": []}
    for seed in point.seeds:
        inputs = prepare_inputs(graph, settings, device)
        (run,), took = train_runs(method, inputs, [Job(settings, seed)])
        if not runs:  # the peak memory is that of a single run
            alone = evaluate_runs(graph, inputs, method, settings, [seed], [run], took)
        runs.append(run)
        for step, seconds in times.items():
            seconds.append(took[step])
    result = evaluate_runs(graph, inputs, method, settings, list(point.seeds), runs, took)
    record = _record(point, result) | {"times": times, "peak_memory_mb": alone.peak_memory_mb}
    return record, NodeLosses.of(result)


@lru_cache(maxsize=1)
def evaluated_graph(dataset: str, evaluate: str, root: Path | None) -> Data:
    """Load a graph whose test mask is the nodes to evaluate: "test" or "all"."""
    return evaluate_on(load(dataset, root=root, sparse=True), evaluate)


def _record(point: Point, result: Result) -> dict[str, Any]:
    """Return what is kept of a trial: figures by seed, settings, and what it cost.

    JSON has no NaN: a figure that is none is None, and so are all figures of a run that diverged,
    which mean nothing.
    """
    figures = {name: getattr(result, name).runs for name in FIGURES}
    # None of the calibrated biases is left out (see docs/metrics.md).
    figures["calibrated_bias"] = [run.scaled_bias for run in result.run_metrics]
    runs: dict[str, list[float | None]] = {name: [] for name in FIGURES}
    for values in zip(*figures.values(), strict=True):
        run = {
            name: value if math.isfinite(value) else None
            for name, value in zip(FIGURES, values, strict=True)
        }
        lost = diverged({"runs": {name: [value] for name, value in run.items()}})
        for name, value in run.items():
            runs[name].append(None if lost else value)
    return {
        "values": dict(point.values),
        "seeds": list(point.seeds),
        "settings": result.settings,
        "device": result.device,
        "parameters": result.parameters,
        "seconds": result.seconds,
        "peak_memory_mb": result.peak_memory_mb,
        "runs": runs,
        "notes": result.notes,
    }
