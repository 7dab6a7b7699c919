"""``fit_rows``: train on rows of smoothed features on disk, evaluate, and save the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ...evaluation.calibration import precise_temperature
from ...evaluation.degree_bias import node_scores
from ...evaluation.run_metrics import RunMetrics, metrics_of_scores
from ...graphs.shards.shard_graph import ShardNodes
from ...methods.base import accuracy_of
from ...methods.smoothed_mlp_inputs import SmoothedMLPSettings
from ...training.sampled.inference import exchange_rows
from ...training.smoothed.row_order import RowOrder
from ...training.smoothed.row_scores import RowModel, row_scores
from ...training.smoothed.row_training import BATCH_ROWS, LabeledRows, RowTraining
from ...training.smoothed.smoothed_files import SmoothedRows
from .stepwise_runs import fit_seeds

Ints = NDArray[np.int64]
#: Steps that training takes by default, if that is neither under 3 nor over 200 epochs.
USUAL_STEPS, FEWEST_EPOCHS = 2000, 3
#: Validation nodes whose accuracy the progress shows, and that the temperature is found on, at
#: most: of more, so many are taken.
SHOWN_NODES, CALIBRATION_NODES = 10_000, 200_000


def usual_epochs(steps: int, most: int) -> int:
    """Return the epochs of training where the user names none.

    Args:
        steps: The steps of one epoch.
        most: The epochs of whole-graph training, each of one step.

    Returns:
        As many epochs as make about 2,000 steps, but at least 3 and at most ``most``.
    """
    return min(most, max(FEWEST_EPOCHS, math.ceil(USUAL_STEPS / steps)))


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
    train, shown = nodes.nodes("train"), evenly(nodes.nodes("val"), SHOWN_NODES)
    rows = LabeledRows(file, train, nodes.y[train], nodes.shards.classes, shown, nodes.y[shown])
    steps = RowOrder(len(train), 4 * file.num_features, batch_size, seeds[0]).steps
    settings = replace(settings, epochs=epochs or usual_epochs(steps, settings.epochs))

    def begin(seed: int) -> RowTraining:
        return RowTraining(
            rows,
            settings,
            batch_size=batch_size,
            seed=seed,
            context=context,
            average=average,
            memory=memory,
        )

    def evaluate(training: RowTraining) -> tuple[RunMetrics, float, dict[str, Any]]:
        about = {
            "steps": training.steps * training.trained_epochs,
            "training_rows": len(train),
            "streamed": not training.in_memory,
        }
        return *evaluate_rows([RowModel(training.kept, file)], nodes, training.context), about

    return fit_seeds(
        seeds,
        out,
        begin,
        evaluate,
        {"batch_size": batch_size, "average": average},
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


def evaluate_rows(
    models: Sequence[RowModel],
    nodes: ShardNodes,
    context: DistributedContext | None = None,
    temperature: float | None = None,
) -> tuple[RunMetrics, float]:
    """Compute the metrics on all test nodes, of which only three numbers each are kept.

    The scores of several models are those of their mean, divided by the ``temperature``.

    Returns:
        The metrics, the same in every process, and the accuracy on the validation nodes, of which
        at most 200,000 are taken, in per cent.
    """
    context = context or DistributedContext()

    def scores(chosen: Ints) -> Iterator[tuple[slice, Tensor, Tensor]]:
        for part, logits in row_scores(models, chosen, temperature):
            if not bool(logits.isfinite().all()):
                raise RawlsError(
                    "the trained model's scores are not finite numbers, so that it is not saved: "
                    "lower the learning rate and start again"
                )
            yield part, logits.double(), torch.from_numpy(nodes.y[chosen[part]])

    def all_scores(chosen: Ints, out: Tensor) -> None:
        for part, logits, _ in scores(chosen):
            out[part] = logits

    val = evenly(nodes.nodes("val"), CALIBRATION_NODES)
    val_logits = _shared(all_scores, val, nodes.shards.classes, context)
    scaling = precise_temperature(val_logits, torch.from_numpy(nodes.y[val]))

    def figures(chosen: Ints, out: Tensor) -> None:
        for part, logits, y in scores(chosen):
            out[part, 0], out[part, 1] = node_scores(logits, y)
            out[part, 2] = node_scores(logits / scaling.value, y)[0]

    test = nodes.nodes("test")
    loss, right, scaled = _shared(figures, test, 3, context).unbind(1)
    degree = torch.from_numpy(nodes.degree[test])
    accuracy = 100 * accuracy_of(val_logits, torch.from_numpy(nodes.y[val]))
    return metrics_of_scores(loss, right, scaled, degree, scaling), accuracy


def _shared(
    work: Callable[[Ints, Tensor], None], nodes: Ints, width: int, context: DistributedContext
) -> Tensor:
    """What ``work`` writes for some nodes, of which every process takes a range."""
    cuts = (np.arange(context.world_size + 1) * len(nodes) // context.world_size).tolist()
    out = torch.empty(len(nodes), width, dtype=torch.float64)
    first, last = cuts[context.rank : context.rank + 2]
    work(nodes[first:last], out[first:last])
    exchange_rows(out, cuts, context.device)
    return out


def evenly(nodes: Ints, most: int) -> Ints:
    """At most so many of the nodes, evenly spaced among all."""
    if len(nodes) <= most:
        return nodes
    return nodes[np.arange(most) * len(nodes) // most]
