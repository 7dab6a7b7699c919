"""``fit_sampled``: train on sampled neighborhoods, evaluate on the whole graph, save the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..._core.distributed_context import DistributedContext
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ...evaluation.run_metrics import RunMetrics, evaluate_run
from ...methods import Method, Settings
from ...methods.base import accuracy_of
from ...training.sampled.inference import MOST_ROWS
from ...training.sampled.sources import Source
from ...training.sampled.trainer import SampledTraining
from .stepwise_runs import fit_seeds


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

    def begin(seed: int) -> SampledTraining:
        return SampledTraining(
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

    def evaluate(training: SampledTraining) -> tuple[RunMetrics, float, dict[str, Any]]:
        """The scores with all neighbors of every node."""
        logits = training.logits(rows_at_once)
        if not bool(logits.isfinite().all()):
            raise RawlsError(
                "the trained model's scores are not finite numbers, so that it is not saved: lower "
                f"the learning rate of {training.settings.lr:g} and start again"
            )
        test, val = source.masks["test_mask"], source.masks["val_mask"]
        degree = torch.from_numpy(source.adjacency.degree)
        figures = evaluate_run(logits, source.y, degree, test, val)
        return figures, 100 * accuracy_of(logits[val], source.y[val]), {}

    return fit_seeds(
        seeds,
        out,
        begin,
        evaluate,
        {"num_neighbors": list(num_neighbors), "batch_size": batch_size, "average": average},
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
