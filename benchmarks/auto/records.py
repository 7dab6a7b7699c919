"""Train one model on one split, and keep its figures in a file of its own."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from torch import Tensor
from torch.nn import functional

import rawlsgcn
from rawlsgcn._core.atomic_files import atomic_file
from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.machine import machine, peak_memory_mb
from rawlsgcn._core.progress import ProgressCallback, no_progress
from rawlsgcn._core.serialization import jsonable
from rawlsgcn.evaluation.calibration import temperature
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.methods import Inputs

from .splits import load_split
from .training import EPOCHS, Answer, best_mean, grid, train_rival

AUTO = "auto"
#: Probabilities under this are raised to it, of every model: log 0 is not a number.
LEAST = 1e-12


@dataclass(frozen=True)
class Task:
    """One model to be trained on one split of one graph."""

    graph: str
    split: int
    model: str

    def file(self, out: Path) -> Path:
        return out / "runs" / f"{self.graph}-{self.split}-{self.model}.json"

    def __str__(self) -> str:
        return f"{self.graph}, split {self.split}, {self.model}"


@dataclass(frozen=True)
class Options:
    """How tasks are run; it can be sent to another process.

    Attributes:
        out: The folder of the results.
        device: The device.
        runs: The number of runs of a rival; None for its whole grid.
        epochs: The epochs of each run of a rival.
        seed: The seed of ``auto`` and of the runs.
        root: The folder of the datasets.
        command: The command line, to be kept with the figures.
    """

    out: Path
    device: torch.device
    runs: int | None = None
    epochs: int = EPOCHS
    seed: int = 0
    root: Path | None = None
    command: str = ""


def run_task(
    task: Task,
    options: Options,
    *,
    auto: Callable[..., Any] | None = None,
    progress: ProgressCallback = no_progress,
) -> dict[str, Any]:
    """Train a model, evaluate it and write its record.

    Args:
        task: The model, the graph and the split.
        options: How to run it.
        auto: The function to call for 'auto'; by default ``rawlsgcn.auto``.
        progress: Called with the steps done and the steps in total.

    Returns:
        The record.
    """
    graph = load_split(task.graph, task.split, options.root)
    measured = _reset_peak_memory(options.device)
    started = time.perf_counter()
    if task.model == AUTO:
        answer = _auto(auto or rawlsgcn.auto, graph, options, progress)
    else:
        inputs = Inputs.of(graph, device=options.device)
        runs = train_rival(
            task.model,
            inputs,
            grid(task.model, options.runs, options.seed),
            epochs=options.epochs,
            progress=progress,
        )
        answer = best_mean(runs, inputs)
    seconds = time.perf_counter() - started
    memory = peak_memory_mb(options.device) if measured else math.nan
    found = {
        "graph": task.graph,
        "split": task.split,
        "model": task.model,
        **figures(graph, answer.probabilities),
        "seconds": seconds,
        "peak_memory_mb": memory,
        "runs": answer.runs,
        "diverged": answer.diverged,
        "epochs": options.epochs if task.model != AUTO else None,
        "chosen": answer.chosen,
        **answer.details,
        "seed": options.seed,
        **environment(options.device),
        "command": options.command,
    }
    record: dict[str, Any] = jsonable(found)
    with atomic_file(task.file(options.out)) as temporary:
        temporary.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return record


def environment(device: torch.device) -> dict[str, Any]:
    """What a record says of the device, the machine and the versions."""
    return {
        "device": device.type,
        "machine": machine(device),
        "versions": {
            "rawlsgcn": rawlsgcn.__version__,
            "torch": torch.__version__,
            "torch_geometric": torch_geometric.__version__,
        },
    }


def figures(graph: Any, probabilities: Tensor) -> dict[str, float]:
    """The figures of an answer, on all labeled nodes outside training and validation."""
    logits = probabilities.double().cpu().clamp(min=LEAST).log()
    degree = torch.bincount(graph.edge_index[0].cpu(), minlength=int(graph.num_nodes))
    metrics = evaluate_run(logits, graph.y, degree, graph.test_mask, graph.val_mask)
    val = (graph.val_mask & (graph.y >= 0)).cpu()
    y = graph.y.cpu()[val]
    scaled = logits[val] / temperature(logits[val], y).value
    return {
        "accuracy": metrics.accuracy,
        "low_degree_accuracy": metrics.low_degree_accuracy,
        "calibrated_bias": metrics.calibrated_bias,
        "validation_accuracy": 100 * float((logits[val].argmax(-1) == y).double().mean()),
        "calibrated_validation_loss": float(functional.cross_entropy(scaled, y)),
        "temperature": metrics.temperature,
        "evaluated_nodes": int((graph.test_mask & (graph.y >= 0)).sum()),
    }


def read_records(out: Path) -> list[dict[str, Any]]:
    """Read all records of a folder, in the order of their names."""
    return read_files(out / "runs", ("graph", "split", "model"), "a run")


def read_files(folder: Path, fields: Sequence[str], what: str) -> list[dict[str, Any]]:
    """Read the JSON files of a folder, in the order of their names.

    Raises:
        RawlsError: If a file does not have these fields.
    """
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            _ = [record[field] for field in fields]
        except (ValueError, KeyError, TypeError) as error:
            raise RawlsError(f"{path} is not a record of {what}: delete it") from error
        records.append(record)
    return records


def _auto(
    auto: Callable[..., Any], graph: Any, options: Options, progress: ProgressCallback
) -> Answer:
    result = auto(
        graph,
        seed=options.seed,
        device=str(options.device),
        evaluate="all",
        progress=progress,
    )
    # The softmax in float64 of what the result predicts with.
    probabilities = torch.softmax(result.logits[result.best_run].double(), -1)
    return Answer(
        probabilities,
        int(result.leaderboard["runs"].sum()),
        0,
        list(result.chosen),
        {name: getattr(result, name).to_dict("records") for name in ("leaderboard", "parts")},
    )


def _reset_peak_memory(device: torch.device) -> bool:
    """Count the peak memory from here; False where the system cannot (not Linux)."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True
