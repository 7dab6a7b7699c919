"""Sampled training from the last checkpoint to the end, with new checkpoints on the way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torch import distributed

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from .checkpoints import Position, load_checkpoint, save_checkpoint
from .distributed_context import require_equal
from .trainer import SampledTraining


def train_with_checkpoints(
    training: SampledTraining,
    folder: Path,
    run: dict[str, Any],
    checkpoint_every: int = 0,
    progress: ProgressCallback = no_progress,
) -> float:
    """Train to the end, from the newest checkpoint in a folder if there is one.

    A checkpoint is written after each epoch.

    Args:
        training: The training, with its initial weights.
        folder: The folder of the checkpoints.
        run: What must be the same when a run goes on: settings, graph, seed.
        checkpoint_every: Write a checkpoint also after so many steps; 0 for only after epochs.
        progress: Called by the first process with the steps done, the steps in total and the epoch.

    Returns:
        The seconds that it took.

    Raises:
        RawlsError: If the checkpoint is damaged, of another run or of more epochs, or the loss is
            not finite.
    """
    context, started = training.context, time.perf_counter()
    position = load_checkpoint(folder, training.state, training.optimizer, run)
    require_equal([position.epoch, position.step], "checkpoints", context)
    if position.step >= training.steps:
        raise RawlsError(
            f"{folder} has a checkpoint after {position.step} steps of an epoch, which has "
            f"{training.steps}: it is damaged; delete it to start again"
        )
    if position.epoch * training.steps + position.step > training.total:
        raise RawlsError(
            f"{folder} has a checkpoint after {position.epoch} epochs, more than the "
            f"{training.settings.epochs} to train for: give more --epochs or another --out"
        )
    if position.total != training.total:
        training.mean.n_averaged.zero_()  # the last steps of a shorter run are not the last now

    def save(epoch: int, step: int = 0) -> None:
        if context.rank == 0:
            there = Position(epoch, step, training.total)
            save_checkpoint(folder, training.state, training.optimizer, there, run)

    for epoch in range(position.epoch, training.settings.epochs):
        first = position.step if epoch == position.epoch else 0
        for step, batch in enumerate(training.batches(epoch, first), start=first):
            training.step(batch, epoch, step)
            done = epoch * training.steps + step + 1
            if context.rank == 0:
                progress(done, training.total, f"epoch {epoch + 1}")
            if checkpoint_every and done % checkpoint_every == 0 and step + 1 < training.steps:
                save(epoch, step + 1)
        save(epoch + 1)
    if context.world_size > 1:
        distributed.barrier()
    return time.perf_counter() - started
