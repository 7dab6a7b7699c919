"""One epoch of a training on batches."""

from __future__ import annotations

from rawlsgcn.training.batch_training import BatchTraining


def train_epoch(training: BatchTraining, epoch: int) -> float:
    """Train on all training nodes once; return the mean loss of the steps."""
    batches = enumerate(training.batches(epoch))
    losses = [training.step(batch, epoch, number) for number, batch in batches]
    return sum(losses) / len(losses)
