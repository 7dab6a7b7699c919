"""``fit_rows`` and ``fit_sampled``: train in steps, a run for each seed, evaluate and save.

Each run has a folder with checkpoints of its own; all runs together are one model.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..._core.atomic_folders import atomic_directory
from ..._core.distributed_context import DistributedContext
from ..._core.machine import peak_memory_mb
from ..._core.progress import ProgressCallback, no_progress
from ..._core.serialization import jsonable
from ...evaluation.run_metrics import RunMetrics, evaluate_run
from ...graphs.shards.shard_graph import ShardNodes
from ...methods import Method, Settings
from ...methods.base import accuracy_of
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ...training.batch_training import BatchTraining
from ...training.checkpoints import train_with_checkpoints
from ...training.sampled.inference import MOST_ROWS
from ...training.sampled.sources import Source
from ...training.sampled.trainer import SampledTraining
from ...training.smoothed.row_order import BATCH_ROWS, RowOrder
from ...training.smoothed.row_scores import RowModel
from ...training.smoothed.row_training import RowTraining
from ...training.smoothed.smoothed_files import SmoothedRows
from ...training.whole_graph import PartialProgress
from ..model_files import outdated_in, write_model
from ..trained_runs import Spread
from .row_evaluation import evaluate_rows, require_finite_scores

Training = TypeVar("Training", bound=BatchTraining)
#: Steps that training on rows takes by default, if that is neither under 3 nor over 200 epochs.
USUAL_STEPS, FEWEST_EPOCHS = 2000, 3


def usual_epochs(steps: int, most: int) -> int:
    """As many epochs as make about 2,000 steps, but at least 3 and at most ``most``."""
    return min(most, max(FEWEST_EPOCHS, math.ceil(USUAL_STEPS / steps)))


def with_usual_epochs(
    settings: SmoothedMLPSettings, nodes: ShardNodes, file: SmoothedRows, batch_size: int
) -> SmoothedMLPSettings:
    """The settings with the epochs of training on these rows where the user names none."""
    train = len(nodes.nodes("train"))
    steps = RowOrder(train, 4 * file.num_features, batch_size, seed=0).steps
    return replace(settings, epochs=usual_epochs(steps, settings.epochs))


def fit_rows(
    nodes: ShardNodes,
    file: SmoothedRows,
    settings: SmoothedMLPSettings,
    out: Path | None,
    *,
    row_normalized: bool,
    epochs: int | None = None,
    batch_size: int = BATCH_ROWS,
    seeds: Sequence[int] = (0,),
    context: DistributedContext | None = None,
    average: float = 0.1,
    checkpoint_every: int = 0,
    memory: int = 1 << 40,
    progress: ProgressCallback = no_progress,
) -> dict[str, Any]:
    """Train smoothed-mlp on rows, evaluate it on the test nodes and save the model in ``out``.

    If ``out`` has a checkpoint of the same run, training goes on from it.

    Args:
        nodes: The labels, the split and the degrees.
        file: The smoothed rows of all nodes.
        settings: The settings of smoothed-mlp.
        out: The folder of the model, its metrics and checkpoints; None to keep none of them.
        row_normalized: Whether rows of features were divided by their sums before the smoothing.
        epochs: The number of epochs; by default as many as make about 2,000 steps, at least 3 and
            at most those of the settings.
        batch_size: Rows of one step, about, shared by all processes.
        seeds: One for each run: decides its initial weights, the order of the rows and dropout.
        context: Which of how many processes this one is; by default the only one.
        average: The share of all steps, the last ones, whose mean weights are saved.
        checkpoint_every: Write a checkpoint after so many steps; 0 for only after each epoch.
        memory: Bytes that this process may use.
        progress: Called with the steps done, the steps in total and the epoch.

    Returns:
        The metrics, in every process; the first one also writes them.

    Raises:
        RawlsError: If a part of the split has no nodes, the checkpoint does not fit, or training
            diverges.
    """
    how: dict[str, Any] = {"batch_size": batch_size, "average": average}
    usual = with_usual_epochs(settings, nodes, file, batch_size)
    settings = replace(settings, epochs=epochs or usual.epochs)

    def evaluate(training: RowTraining) -> tuple[RunMetrics, float, dict[str, Any]]:
        about = {
            "steps": training.steps * training.trained_epochs,
            "training_rows": len(training.train),
            "streamed": not training.in_memory,
        }
        return *evaluate_rows([RowModel(training.kept, file)], nodes, training.context), about

    return _fit_seeds(
        seeds,
        out,
        partial(RowTraining, nodes, file, settings, context=context, memory=memory, **how),
        evaluate,
        how,
        checkpoint_every,
        progress,
        method="smoothed-mlp",
        row_normalized=row_normalized,
        num_features=file.num_features,
        num_classes=nodes.shards.classes,
        dataset=nodes.shards.name,
        class_names=nodes.shards.class_names,
        fingerprint=nodes.shards.fingerprint,
    )


def fit_sampled(
    method: Method,
    source: Source,
    settings: Settings,
    out: Path | None,
    *,
    num_neighbors: Sequence[int],
    batch_size: int = 1024,
    seeds: Sequence[int] = (0,),
    context: DistributedContext | None = None,
    workers: int = 0,
    average: float = 0.1,
    checkpoint_every: int = 0,
    rows_at_once: int = MOST_ROWS,
    progress: ProgressCallback = no_progress,
) -> dict[str, Any]:
    """Train a method on samples, evaluate it on the whole graph and save the model in ``out``.

    If ``out`` has a checkpoint of the same run, training goes on from it.

    Args:
        method: A method of the GCN family.
        source: The graph, in memory or in shards.
        settings: The method's settings; ``num_layers`` is the length of ``num_neighbors``.
        out: The folder of the model, its metrics and checkpoints; None to keep none of them.
        num_neighbors: Neighbors drawn for each node and layer, outermost layer first; −1 for all.
        batch_size: Training nodes of one step, shared by all processes.
        seeds: One for each run: decides its initial weights, the order of the training nodes and
            every draw.
        context: Which of how many processes this one is; by default the only one.
        workers: Further processes that draw batches ahead.
        average: The share of all steps, the last ones, whose mean weights are saved.
        checkpoint_every: Write a checkpoint after so many steps; 0 for only after each epoch.
        rows_at_once: Nodes whose features are read at once for the scores of all nodes; see
            ``training.sampled.inference``.
        progress: Called with the steps done, the steps in total and the epoch.

    Returns:
        The metrics, in every process; the first one also writes them.

    Raises:
        RawlsError: If the method cannot be sampled, the checkpoint does not fit, or training
            diverges.
    """
    how: dict[str, Any] = {"num_neighbors": list(num_neighbors), "batch_size": batch_size}
    how["average"] = average

    def evaluate(training: SampledTraining) -> tuple[RunMetrics, float, dict[str, Any]]:
        """The scores with all neighbors of every node."""
        logits = training.logits(rows_at_once)
        require_finite_scores(logits, settings.lr)
        test, val = source.masks["test_mask"], source.masks["val_mask"]
        degree = torch.from_numpy(source.adjacency.degree)
        figures = evaluate_run(logits, source.y, degree, test, val)
        return figures, 100 * accuracy_of(logits[val], source.y[val]), {}

    return _fit_seeds(
        seeds,
        out,
        partial(SampledTraining, method, source, settings, context=context, workers=workers, **how),
        evaluate,
        how,
        checkpoint_every,
        progress,
        method=method.name,
        row_normalized=source.normalize,
        num_features=source.num_features,
        num_classes=source.num_classes,
        dataset=source.name,
        class_names=source.class_names,
        fingerprint=source.fingerprint,
    )


def _fit_seeds(
    seeds: Sequence[int],
    out: Path | None,
    begin: Callable[..., Training],
    evaluate: Callable[[Training], tuple[RunMetrics, float, dict[str, Any]]],
    how: dict[str, Any],
    checkpoint_every: int,
    progress: ProgressCallback,
    **model: Any,
) -> dict[str, Any]:
    """Train and evaluate a run for each seed, and save all as one model.

    ``begin`` makes the training of a seed, and ``evaluate`` returns the metrics of a trained run,
    its accuracy on the validation nodes in per cent, and what else ``metrics.json`` has of it.
    ``how`` must be the same when a run goes on, beside its seed and settings. ``model`` has the
    fields of :class:`.saved_models.TrainedModel` that are not the runs'.
    """
    several = len(seeds) > 1
    runs: list[dict[str, Any]] = []
    states: dict[int, dict[str, Tensor]] = {}
    kept: AbstractContextManager[str | Path] = (
        tempfile.TemporaryDirectory() if out is None else nullcontext(out)
    )
    with kept as folder:
        for place, seed in enumerate(seeds):
            training, where, shown = begin(seed=seed), Path(folder), progress
            if several:
                where /= f"seed-{seed}"
                count = 1000 * len(seeds)
                shown = PartialProgress(progress, 1000 * place, 1000, count, f"seed {seed}")
            settings = asdict(training.settings)
            del settings["epochs"]  # a run may go on for longer
            about = {"method": model["method"], "graph": model["fingerprint"], **how}
            about |= {"seed": seed, "settings": settings}
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
            weights = training.kept.state_dict()
            states[seed] = {name: each.detach().cpu() for name, each in weights.items()}
    best = max(seeds, key=lambda seed: runs[seeds.index(seed)]["validation_accuracy"])
    metrics = dict(runs[0])
    if several:
        del metrics["seed"]
        metrics |= {"seeds": list(seeds), "best_seed": best}
        for name in numbers:
            each = [run[name] for run in runs]
            metrics[name] = each if name == "calibration" else asdict(Spread.of(each))
        metrics["epochs"] = max(run["epochs"] for run in runs)
        for name in {"steps", "seconds"} & metrics.keys():
            metrics[name] = sum(run[name] for run in runs)
    metrics = dict(jsonable(metrics))
    if out is not None and training.context.rank == 0:
        about = {"settings": asdict(training.settings), "best_seed": best, **model}
        with atomic_directory(out, outdated_in(out)) as temporary:
            write_model(temporary, states, metrics, **about)
    return metrics
