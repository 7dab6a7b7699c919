"""Checkpoints of training in steps: weights, optimizer and position, from which a run resumes.

A checkpoint is a folder that appears whole or not at all, so that a process may be killed at any
moment. The weights and Adam's moments are in safetensors, the rest in JSON; nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.optim import Adam

from ..._core.atomic_files import remove
from ..._core.atomic_folders import atomic_directory
from ..._core.distributed_context import require_equal
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ..._core.serialization import (
    JsonFields,
    is_nonnegative_int,
    read_json,
    read_tensors,
    require_matching_tensors,
)
from ..._core.text import plural
from .batch_training import BatchTraining

_WEIGHTS, _OPTIMIZER, _ABOUT = "weights.safetensors", "optimizer.safetensors", "checkpoint.json"
#: Between the checkpoints after two epochs: writing one takes longer than an epoch of few rows.
_SECONDS = 1.0
_ENTRIES: JsonFields = {
    **dict.fromkeys(("epoch", "step", "total"), ("a whole number", is_nonnegative_int)),
    "run": ("a table of settings", lambda value: isinstance(value, dict)),
}


@dataclass(frozen=True)
class Position:
    """The epoch and step that come next, the steps of the whole run, and the seconds so far."""

    epoch: int = 0
    step: int = 0
    total: int = 0
    seconds: float = 0.0


def save_checkpoint(
    folder: Path,
    network: nn.Module,
    optimizer: Adam,
    position: Position,
    run: dict[str, Any],
) -> None:
    """Write a checkpoint and then delete those before it.

    Args:
        folder: The folder of the checkpoints.
        network: Everything that is learned.
        optimizer: The optimizer of the network.
        position: Where the run will go on.
        run: What must be the same when it goes on: settings, graph, seed.
    """
    from safetensors.torch import save

    name = f"checkpoint-{position.epoch:06d}-{position.step:08d}"
    with atomic_directory(folder / name) as temporary:
        tensors = {key: value.cpu().contiguous() for key, value in network.state_dict().items()}
        (temporary / _WEIGHTS).write_bytes(save(tensors))
        moments = {key: value.cpu().contiguous() for key, value in _moments(optimizer).items()}
        (temporary / _OPTIMIZER).write_bytes(save(moments))
        about = {**asdict(position), "run": run}
        (temporary / _ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    for old in _checkpoints(folder):
        if old.name < name:
            remove(old)


def load_checkpoint(
    folder: Path, network: nn.Module, optimizer: Adam, run: dict[str, Any]
) -> Position:
    """Restore the newest checkpoint, if there is one.

    Neither the network nor the optimizer is changed if a part of the checkpoint does not fit.

    Args:
        folder: The folder of the checkpoints.
        network: Everything that is learned.
        optimizer: The optimizer of the network.
        run: What must be the same as in the checkpoint.

    Returns:
        Where the run goes on; the beginning without a checkpoint.

    Raises:
        RawlsError: If the checkpoint is damaged or of another run.
    """
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return Position()
    newest = checkpoints[-1]
    try:
        about = read_json(newest / _ABOUT, _ENTRIES)
        weights, moments = (read_tensors(newest / name) for name in (_WEIGHTS, _OPTIMIZER))
    except (OSError, RawlsError) as error:
        raise _unreadable(newest, error) from error
    _require_same(about["run"], run, folder)
    try:
        require_matching_tensors(weights, network.state_dict())
        _require_moments(moments, optimizer)
    except RawlsError as error:
        raise _unreadable(newest, error) from error
    network.load_state_dict(weights)
    _set_moments(optimizer, moments)
    seconds = about.get("seconds")  # which an earlier version did not write
    if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
        seconds = 0.0
    return Position(about["epoch"], about["step"], about["total"], seconds)


def _moments(optimizer: Adam) -> dict[str, Tensor]:
    """Adam's moments of each of its parameters, by number and name."""
    state = optimizer.state_dict()["state"]
    return {f"{at}/{name}": value for at, kept in state.items() for name, value in kept.items()}


def _require_moments(moments: dict[str, Tensor], optimizer: Adam) -> None:
    """Moments of every parameter, or of none before the first step; a square is not negative."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    wanted: dict[str, Tensor] = {}
    for at, parameter in enumerate(parameters if moments else ()):
        wanted |= {f"{at}/exp_avg": parameter, f"{at}/exp_avg_sq": parameter}
        wanted[f"{at}/step"] = torch.tensor(0.0)
    require_matching_tensors(moments, wanted)
    for name, value in moments.items():
        if not name.endswith("/exp_avg") and bool((value < 0).any()):
            raise RawlsError(f"the tensor '{name}' has negative numbers")


def _set_moments(optimizer: Adam, moments: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in moments.items():
        at, _, name = key.partition("/")
        state.setdefault(int(at), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _unreadable(checkpoint: Path, error: Exception) -> RawlsError:
    return RawlsError(
        f"the checkpoint {checkpoint} cannot be read ({error}): delete it to start again"
    )


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("checkpoint-*") if path.is_dir())


def _require_same(kept: dict[str, Any], run: dict[str, Any], folder: Path) -> None:
    differing = [
        f"its {name} is {old!r}, not {new!r}"
        for name, (old, new) in _differences(kept, json.loads(json.dumps(run))).items()
    ]
    if differing:
        raise RawlsError(
            f"{folder} has a checkpoint of another run: {', '.join(differing)}; choose another "
            "--out or delete it"
        )


def _differences(kept: dict[str, Any], run: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs, by name, also in the tables of both."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, new in run.items():
        old = kept.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found |= _differences(old, {**dict.fromkeys(old), **new})
        elif old != new:
            found[name] = (old, new)
    return found


def train_with_checkpoints(
    training: BatchTraining[Any],
    folder: Path,
    run: dict[str, Any],
    checkpoint_every: int = 0,
    progress: ProgressCallback = no_progress,
) -> float:
    """Train to the end, from the newest checkpoint in a folder if there is one.

    Training ends earlier if the settings have patience and validation does not improve any more. A
    checkpoint is written after the first epoch and the last one, and after each of the others
    that ends a second or more after the last was written.

    Args:
        training: The training, with its initial weights.
        folder: The folder of the checkpoints.
        run: What must be the same when a run goes on: settings, graph, seed.
        checkpoint_every: Write a checkpoint also after so many steps; 0 for only after epochs.
        progress: Called by the first process with the steps done, the steps in total and the epoch.

    Returns:
        The seconds that it took, with those up to the checkpoint.

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
            f"{folder} has a checkpoint after {plural(position.epoch, 'epoch')}, more than "
            f"the {training.settings.epochs} to train for: give more --epochs or another --out"
        )
    if position.total != training.total:
        training.mean.n_averaged.zero_()  # the last steps of a shorter run are not the last now

    written = -math.inf

    def seconds() -> float:
        return position.seconds + time.perf_counter() - started

    def save(epoch: int, step: int = 0) -> None:
        nonlocal written
        if context.rank == 0:
            written = time.monotonic()
            there = Position(epoch, step, training.total, seconds())
            save_checkpoint(folder, training.state, training.optimizer, there, run)

    for epoch in range(position.epoch, training.settings.epochs):
        if training.stopped:
            break
        first = position.step if epoch == position.epoch else 0
        for step, batch in enumerate(training.batches(epoch, first), start=first):
            training.step(batch, epoch, step)
            done = epoch * training.steps + step + 1
            if context.rank == 0:
                progress(done, training.total, f"epoch {epoch + 1}")
            if checkpoint_every and done % checkpoint_every == 0 and step + 1 < training.steps:
                save(epoch, step + 1)
        training.watch()
        ended = training.stopped or epoch + 1 == training.settings.epochs
        if ended or time.monotonic() - written >= _SECONDS:
            save(epoch + 1)
        if context.rank == 0:
            progress((epoch + 1) * training.steps, training.total, training.epoch_ended(epoch))
    if context.world_size > 1:
        distributed.barrier()
    return seconds()
