"""``fit_sampled``: train on sampled neighborhoods, evaluate on the whole graph, save the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from .._core.atomic_folders import atomic_directory
from .._core.errors import RawlsError
from .._core.machine import peak_memory_mb
from .._core.progress import ProgressCallback, no_progress
from .._core.serialization import jsonable
from ..evaluation.run_metrics import evaluate_run
from ..methods import Method, Settings
from ..training.batch_training import BatchTraining
from ..training.sampled.checkpoints import train_with_checkpoints
from ..training.sampled.distributed_context import DistributedContext
from ..training.sampled.memory_plan import MOST_ROWS
from ..training.sampled.sources import Source
from ..training.sampled.trainer import SampledTraining
from .saved_models import outdated_in, write_model


def fit_sampled(
    method: Method,
    source: Source,
    settings: Settings,
    out: Path,
    *,
    num_neighbors: Sequence[int],
    batch_size: int = 1024,
    seed: int = 0,
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
        out: The folder of the model, its metrics and checkpoints.
        num_neighbors: Neighbors drawn for each node and layer, outermost layer first; −1 for all.
        batch_size: Training nodes of one step, shared by all processes.
        seed: Decides the initial weights, the order of the training nodes and every draw.
        context: Which of how many processes this one is; by default the only one.
        workers: Further processes that draw batches ahead.
        average: The share of all steps, the last ones, whose mean weights are saved.
        checkpoint_every: Write a checkpoint after so many steps; 0 for only after each epoch.
        rows_at_once: Nodes whose features are read at once for the scores of all nodes; see
            :func:`..training.sampled.memory_plan.sampled_rows`.
        progress: Called with the steps done, the steps in total and the epoch.

    Returns:
        The metrics, in every process; the first one also writes them.

    Raises:
        RawlsError: If the method cannot be sampled, the checkpoint does not fit, or training
            diverges.
    """
    training = SampledTraining(
        method,
        source,
        settings,
        num_neighbors=num_neighbors,
        batch_size=batch_size,
        seed=seed,
        context=context,
        workers=workers,
        average=average,
    )
    run = {
        "method": method.name,
        "graph": source.fingerprint,
        "num_neighbors": list(num_neighbors),
        "batch_size": batch_size,
        "seed": seed,
        "average": average,
        "settings": {name: value for name, value in asdict(settings).items() if name != "epochs"},
    }
    seconds = train_with_checkpoints(training, out, run, checkpoint_every, progress)
    metrics = {**run, **_evaluated(training, rows_at_once), "seconds": seconds}
    save_trained(
        training,
        metrics,
        out,
        method=method.name,
        row_normalized=source.normalize,
        num_features=source.num_features,
        num_classes=source.num_classes,
        dataset=source.name,
        class_names=source.class_names,
    )
    return metrics


def save_trained(
    training: BatchTraining[Any], metrics: dict[str, Any], out: Path, **about: Any
) -> None:
    """Write what was trained in steps as a model that ``rawlsgcn predict --model`` reads.

    Only the first process writes.

    Args:
        training: The finished training.
        metrics: What ``metrics.json`` contains.
        out: The folder.
        **about: The fields of :class:`.saved_models.TrainedModel` that are not the training's.
    """
    if training.context.rank == 0:
        with atomic_directory(out, outdated_in(out)) as folder:
            write_model(
                folder,
                {training.seed: training.kept.state_dict()},
                metrics,
                settings=asdict(training.settings),
                best_seed=training.seed,
                fingerprint=metrics["graph"],
                **about,
            )


def _evaluated(training: SampledTraining, rows_at_once: int) -> dict[str, Any]:
    """The metrics on the test nodes, with all neighbors of every node."""
    logits = training.logits(rows_at_once)
    if not bool(logits.isfinite().all()):
        raise RawlsError(
            "the trained model's scores are not finite numbers, so that it is not saved: lower the "
            f"learning rate of {training.settings.lr:g} and start again"
        )
    source, masks = training.source, training.source.masks
    degree = torch.from_numpy(source.adjacency.degree)
    figures = asdict(evaluate_run(logits, source.y, degree, masks["test_mask"], masks["val_mask"]))
    figures["calibration"] = figures["calibration"].value
    return {
        "dataset": source.name,
        "epochs": training.settings.epochs,
        "processes": training.context.world_size,
        "peak_memory_mb": peak_memory_mb(training.context.device),
        **jsonable(figures),
    }
