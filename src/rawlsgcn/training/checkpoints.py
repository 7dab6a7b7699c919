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
from torch import Tensor, nn
from torch.optim import Adam

from .._core.atomic_files import remove
from .._core.atomic_folders import atomic_directory
from .._core.distributed_context import meet, require_equal
from .._core.errors import RawlsError
from .._core.progress import ProgressCallback, no_progress
from .._core.serialization import (
    JsonFields,
    is_nonnegative_int,
    read_json,
    read_tensors,
    require_matching_tensors,
)
from .._core.text import plural
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
    folder: Path, network: nn.Module, optimizer: Adam, position: Position, run: dict[str, Any]
) -> None:
    """Write a checkpoint and then delete those before it.

    ``run`` is what must be the same when it goes on: settings, graph, seed.
    """
    from safetensors.torch import save

    name = f"checkpoint-{position.epoch:06d}-{position.step:08d}"
    moments = {
        f"{at}/{kind}": value
        for at, kept in optimizer.state_dict()["state"].items()
        for kind, value in kept.items()
    }
    with atomic_directory(folder / name) as temporary:
        for file, tensors in ((_WEIGHTS, network.state_dict()), (_OPTIMIZER, moments)):
            kept = {key: value.cpu().contiguous() for key, value in tensors.items()}
            (temporary / file).write_bytes(save(kept))
        about = {**asdict(position), "run": run}
        (temporary / _ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    for old in _checkpoints(folder):
        if old.name < name:
            remove(old)


def load_checkpoint(
    folder: Path, network: nn.Module, optimizer: Adam, run: dict[str, Any]
) -> Position:
    """Restore the newest checkpoint, if there is one; return where the run goes on.

    Neither the network nor the optimizer is changed if a part of the checkpoint does not fit.

    Raises:
        RawlsError: If the checkpoint is damaged or of another ``run``.
    """
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        return Position()
    newest = checkpoints[-1]
    try:
        about = read_json(newest / _ABOUT, _ENTRIES)
        weights, moments = (read_tensors(newest / name) for name in (_WEIGHTS, _OPTIMIZER))
        differing = _differences(about["run"], run)
        if not differing:
            require_matching_tensors(weights, network.state_dict())
            _require_moments(moments, optimizer)
    except (OSError, RawlsError) as error:
        raise RawlsError(
            f"the checkpoint {newest} cannot be read ({error}): delete it to start again"
        ) from error
    if differing:
        raise RawlsError(
            f"{folder} has a checkpoint of another run: {', '.join(differing)}; choose another "
            "--out or delete it"
        )
    network.load_state_dict(weights)
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in moments.items():
        at, _, kind = key.partition("/")
        state.setdefault(int(at), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    seconds = about.get("seconds")  # which an earlier version did not write
    if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
        seconds = 0.0
    return Position(about["epoch"], about["step"], about["total"], seconds)


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


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("checkpoint-*") if path.is_dir())


def _differences(kept: dict[str, Any], run: dict[str, Any]) -> list[str]:
    """What a checkpoint's run and this one differ in, in words."""
    old, new = _flat(kept), _flat(json.loads(json.dumps(run)))
    return [
        f"its {name} is {old.get(name)!r}, not {new.get(name)!r}"
        for name in new | old
        if old.get(name) != new.get(name)
    ]


def _flat(run: dict[str, Any]) -> dict[str, Any]:
    """A run with the settings among the rest."""
    settings = run.get("settings")
    return {**run, "settings": None, **settings} if isinstance(settings, dict) else run


def train_with_checkpoints(
    training: BatchTraining,
    folder: Path,
    run: dict[str, Any],
    checkpoint_every: int = 0,
    progress: ProgressCallback = no_progress,
) -> float:
    """Train to the end, from the newest checkpoint in a folder if there is one.

    Training ends earlier if the settings have patience and validation does not improve any more. A
    checkpoint is written after the first epoch and the last one, after each of the others that
    ends a second or more after the last was written, and with ``checkpoint_every`` after so many
    steps. The first process calls ``progress`` with the steps done and in total, and the epoch.

    Returns:
        The seconds that it took, with those up to the checkpoint.

    Raises:
        RawlsError: If the checkpoint is damaged, of another run or of more epochs, or the loss is
            not finite.
    """
    context, steps, epochs = training.context, training.steps, training.settings.epochs
    started, written = time.perf_counter(), -math.inf
    position = load_checkpoint(folder, training.state, training.optimizer, run)
    require_equal([position.epoch, position.step], "checkpoints", context)
    if position.step >= steps:
        raise RawlsError(
            f"{folder} has a checkpoint after {position.step} steps of an epoch, which has "
            f"{steps}: it is damaged; delete it to start again"
        )
    if position.epoch * steps + position.step > training.total:
        raise RawlsError(
            f"{folder} has a checkpoint after {plural(position.epoch, 'epoch')}, more than "
            f"the {epochs} to train for: give more --epochs or another --out"
        )
    if position.total != training.total:
        training.mean.n_averaged.zero_()  # the last steps of a shorter run are not the last now

    def seconds() -> float:
        return position.seconds + time.perf_counter() - started

    def save(epoch: int, step: int = 0) -> None:
        nonlocal written
        if context.rank == 0:
            written = time.monotonic()
            there = Position(epoch, step, training.total, seconds())
            save_checkpoint(folder, training.state, training.optimizer, there, run)

    def tell(done: int, words: str) -> None:
        if context.rank == 0:
            progress(done, training.total, words)

    for epoch in range(position.epoch, epochs):
        if training.stopped:
            break
        first = position.step if epoch == position.epoch else 0
        for step, batch in enumerate(training.batches(epoch, first), start=first):
            training.step(batch, epoch, step)
            done = epoch * steps + step + 1
            tell(done, f"epoch {epoch + 1}")
            if checkpoint_every and done % checkpoint_every == 0 and step + 1 < steps:
                save(epoch, step + 1)
        accuracy = training.watch()
        if training.stopped or epoch + 1 == epochs or time.monotonic() - written >= _SECONDS:
            save(epoch + 1)
        words = "" if math.isnan(accuracy) else f", validation accuracy {100 * accuracy:.1f} %"
        tell((epoch + 1) * steps, f"epoch {epoch + 1}{words}")
    meet(context)
    return seconds()
