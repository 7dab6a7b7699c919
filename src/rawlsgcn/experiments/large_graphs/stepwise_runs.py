"""Runs that are trained in steps, one for each seed: their folders, their metrics, their model."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from ..._core.atomic_folders import atomic_directory
from ..._core.machine import peak_memory_mb
from ..._core.progress import ProgressCallback
from ..._core.serialization import jsonable
from ...evaluation.run_metrics import RunMetrics
from ...training.in_steps.batch_training import BatchTraining
from ...training.in_steps.checkpoints import train_with_checkpoints
from ..model_files import outdated_in, write_model
from ..trained_runs import Spread

Training = TypeVar("Training", bound=BatchTraining[Any])


def fit_seeds(
    seeds: Sequence[int],
    out: Path | None,
    begin: Callable[[int], Training],
    evaluate: Callable[[Training], tuple[RunMetrics, float, dict[str, Any]]],
    same: dict[str, Any],
    checkpoint_every: int,
    progress: ProgressCallback,
    **model: Any,
) -> dict[str, Any]:
    """Train a run for each seed, each with checkpoints of its own, and save all as one model.

    Args:
        seeds: The seeds.
        out: The folder of the model; None to keep neither it nor checkpoints.
        begin: Makes the training of a seed.
        evaluate: Returns the metrics of a trained run, its accuracy on the validation nodes in per
            cent, and what else ``metrics.json`` has of it.
        same: What must be the same when a run goes on, beside its seed and its settings.
        checkpoint_every: Write a checkpoint after so many steps; 0 for only after each epoch.
        progress: Called with the work done, the work in total and what is trained.
        **model: The fields of :class:`.saved_models.TrainedModel` that are not the runs'.

    Returns:
        The metrics, in every process: numbers of a single run; of several their mean, deviation
        and values, as in memory. The first process also writes them.
    """
    several = len(seeds) > 1
    runs: list[dict[str, Any]] = []
    states: dict[int, dict[str, Tensor]] = {}
    with _folder(out) as folder:
        for place, seed in enumerate(seeds):
            training = begin(seed)
            settings = asdict(training.settings)
            del settings["epochs"]  # a run may go on for longer
            about = {"method": model["method"], "graph": model["fingerprint"], **same}
            about |= {"seed": seed, "settings": settings}
            where = folder / f"seed-{seed}" if several else folder
            shown = _part(progress, place, len(seeds), seed) if several else progress
            seconds = train_with_checkpoints(training, where, about, checkpoint_every, shown)
            figures, accuracy, further = evaluate(training)
            about |= {"dataset": model["dataset"], "epochs": training.trained_epochs, **further}
            about |= {
                "processes": training.context.world_size,
                "peak_memory_mb": peak_memory_mb(training.context.device),
                "seconds": seconds,
            }
            numbers = asdict(figures) | {"validation_accuracy": accuracy}
            numbers["calibration"] = figures.calibration.value
            runs.append(about | numbers)
            kept = training.kept.state_dict()
            states[seed] = {name: each.detach().cpu() for name, each in kept.items()}
    best = max(seeds, key=lambda seed: runs[seeds.index(seed)]["validation_accuracy"])
    metrics = dict(runs[0])
    if several:
        del metrics["seed"]
        metrics |= {"seeds": list(seeds), "best_seed": best}
        for name in numbers:
            metrics[name] = [each[name] for each in runs]
            if name != "calibration":
                metrics[name] = asdict(Spread.of(metrics[name]))
        metrics["epochs"] = max(each["epochs"] for each in runs)
        for name in ("steps", "seconds"):
            if name in metrics:
                metrics[name] = sum(each[name] for each in runs)
    metrics = dict(jsonable(metrics))
    if out is not None and training.context.rank == 0:
        with atomic_directory(out, outdated_in(out)) as temporary:
            write_model(
                temporary,
                states,
                metrics,
                settings=asdict(training.settings),
                best_seed=best,
                **model,
            )
    return metrics


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _part(progress: ProgressCallback, place: int, count: int, seed: int) -> ProgressCallback:
    """The progress of one run as a part of the progress of all."""

    def call(done: int, total: int, description: str | None = None) -> None:
        words = f"seed {seed}" if description is None else f"seed {seed}, {description}"
        progress(1000 * place + 1000 * done // max(1, total), 1000 * count, words)

    return call


def spread_text(metrics: dict[str, Any], name: str, digits: int) -> str:
    """Write a metric for people: its value, or mean ± deviation of several runs.

    Args:
        metrics: What :func:`fit_seeds` returns.
        name: The name of the metric.
        digits: Digits after the point.

    Returns:
        The text; ``undefined`` for one that is not defined.
    """
    value = metrics[name]
    if isinstance(value, dict) and value["mean"] is not None:
        return f"{value['mean']:.{digits}f} ± {value['std']:.{digits}f}"
    defined = isinstance(value, float) and math.isfinite(value)
    return f"{value:.{digits}f}" if defined else "undefined"
