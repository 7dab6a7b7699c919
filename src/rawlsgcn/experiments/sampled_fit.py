"""A sampled run from its last checkpoint to its end: trained, judged and kept."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from .._core.atomic_files import atomic_directory
from .._core.errors import RawlsError
from .._core.machine import peak_memory_mb
from ..evaluation.run_metrics import evaluate_run
from ..methods import Method, Settings
from ..reporting.progress import progress
from ..training.sampled.checkpoints import Position, load_checkpoint, save_checkpoint
from ..training.sampled.distributed_context import require_equal
from ..training.sampled.sources import Source
from ..training.sampled.trainer import SampledTraining
from .saved_models import write_weights


def fit_sampled(
    method: Method, source: Source, settings: Settings, out: Path, every: int, **how: Any
) -> dict[str, Any]:
    """Train a method on samples, judge it on the whole graph and keep the model in ``out``.

    A checkpoint is written after each epoch and ``every`` so many steps (0: not between). ``how``
    is what :class:`SampledTraining` takes. Every process gets the figures, the first one writes
    them. The network is gone when this returns, as it must be before its process group is.
    """
    training = SampledTraining(method, source, settings, **how)
    run = {
        "method": method.name,
        "graph": source.mark,
        "num_neighbors": list(how["num_neighbors"]),
        "batch_size": how["batch_size"],
        "seed": how["seed"],
        "average": how["average"],
        "settings": {name: value for name, value in vars(settings).items() if name != "epochs"},
    }
    seconds = _learn(training, out, run, every)
    logits = training.logits()
    if not bool(logits.isfinite().all()):
        raise RawlsError(
            "the trained model's scores are not finite numbers, so nothing is kept of it: lower "
            f"the learning rate of {settings.lr:g} and begin anew"
        )
    metrics = _judged(training, logits, run, seconds)
    if training.context.rank == 0:
        with atomic_directory(out) as folder:
            # In the form that ``rawlsgcn predict --model`` reads.
            write_weights(
                folder,
                {training.seed: training.kept.state_dict()},
                metrics,
                method=method.name,
                settings=asdict(settings),
                row_normalized=source.normalize,
                num_features=source.num_features,
                num_classes=source.num_classes,
                best_seed=training.seed,
                dataset=source.name,
            )
    return metrics


def _learn(training: SampledTraining, out: Path, run: dict[str, Any], every: int) -> float:
    """Train to the end from where the last checkpoint stands; the seconds it took."""
    context, started = training.context, time.perf_counter()
    position = load_checkpoint(out, training.state, training.optimizer, run)
    require_equal([position.epoch, position.step], "checkpoints", context)
    if position.step >= training.steps:
        raise RawlsError(
            f"{out} holds a checkpoint after {position.step} steps of an epoch, which has "
            f"{training.steps}: it is damaged; delete it to begin anew"
        )
    if position.epoch * training.steps + position.step > training.total:
        raise RawlsError(
            f"{out} holds a checkpoint after {position.epoch} epochs, more than the "
            f"{training.settings.epochs} to train for: give more --epochs or another --out"
        )
    if position.total != training.total:
        training.mean.n_averaged.zero_()  # the last steps of a shorter run are not the last now

    def keep(epoch: int, step: int = 0) -> None:
        if context.rank == 0:
            there = Position(epoch, step, training.total)
            save_checkpoint(out, training.state, training.optimizer, there, run)

    with progress("training") as tell:
        for epoch in range(position.epoch, training.settings.epochs):
            first = position.step if epoch == position.epoch else 0
            for step, batch in enumerate(training.batches(epoch, first), start=first):
                training.step(batch, epoch, step)
                done = epoch * training.steps + step + 1
                if context.rank == 0:
                    tell(done, training.total, f"epoch {epoch + 1}")
                if every and done % every == 0 and step + 1 < training.steps:
                    keep(epoch, step + 1)
            keep(epoch + 1)
    if context.world_size > 1:
        distributed.barrier()
    return time.perf_counter() - started


def _judged(
    training: SampledTraining, logits: Tensor, run: dict[str, Any], seconds: float
) -> dict[str, Any]:
    source, masks = training.source, training.source.masks
    degree = torch.from_numpy(source.adjacency.degree)
    judgement = asdict(
        evaluate_run(logits, source.y, degree, masks["test_mask"], masks["val_mask"])
    )
    judgement["calibration"] = judgement["calibration"].value
    figures = {
        name: None if isinstance(value, float) and value != value else value
        for name, value in judgement.items()
    }
    return {
        **run,
        "dataset": source.name,
        "epochs": training.settings.epochs,
        "processes": training.context.world_size,
        "seconds": seconds,
        "peak_memory_mb": peak_memory_mb(training.context.device),
        **figures,
    }
