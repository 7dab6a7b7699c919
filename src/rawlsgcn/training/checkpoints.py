"""Where a sampled run can be taken up again: weights, optimiser and place, one folder a checkpoint.

A checkpoint is a folder that appears whole or not at all, so that a process may be killed at any
moment. The weights are in safetensors, the optimiser's state is read without unpickling anything
but tensors and numbers.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import RawlsError
from ..files import atomic_directory, remove_folder

_WEIGHTS, _OPTIMISER, _ABOUT = "weights.safetensors", "optimiser.pt", "checkpoint.json"


@dataclass(frozen=True)
class Position:
    """The epoch and step that come next, and how many steps there were to be in all."""

    epoch: int = 0
    step: int = 0
    total: int = 0


def save_checkpoint(
    folder: Path,
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    position: Position,
    run: dict[str, Any],
) -> None:
    """Write a checkpoint and then delete those before it. ``run`` is what must stay the same."""
    from safetensors.torch import save

    name = f"checkpoint-{position.epoch:06d}-{position.step:08d}"
    with atomic_directory(folder / name) as temporary:
        tensors = {key: value.cpu().contiguous() for key, value in network.state_dict().items()}
        (temporary / _WEIGHTS).write_bytes(save(tensors))
        torch.save(optimiser.state_dict(), temporary / _OPTIMISER)
        about = {**asdict(position), "run": run}
        (temporary / _ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    for old in _found(folder):
        if old.name < name:
            remove_folder(old)


def load_checkpoint(
    folder: Path, network: nn.Module, optimiser: torch.optim.Optimizer, run: dict[str, Any]
) -> Position:
    """Take up the newest checkpoint in ``folder``; the beginning, where there is none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    found = _found(folder)
    if not found:
        return Position()
    newest = found[-1]
    try:
        about = json.loads((newest / _ABOUT).read_text(encoding="utf-8"))
        position = Position(*(int(about[name]) for name in ("epoch", "step", "total")))
        _require_same(about["run"], run, folder)
        network.load_state_dict(load_file(newest / _WEIGHTS))
        state = torch.load(newest / _OPTIMISER, map_location="cpu", weights_only=True)
        optimiser.load_state_dict(state)
    except RawlsError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
        SafetensorError,
        pickle.UnpicklingError,
    ) as error:
        raise RawlsError(
            f"the checkpoint {newest} cannot be read ({' '.join(str(error).split())[:100]}): "
            "delete it to begin anew"
        ) from error
    return position


def _found(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("checkpoint-*") if path.is_dir())


def _require_same(kept: dict[str, Any], run: dict[str, Any], folder: Path) -> None:
    for name, value in run.items():
        if kept.get(name) != value:
            raise RawlsError(
                f"{folder} holds a checkpoint of another run: its {name} is {kept.get(name)!r}, "
                f"not {value!r}; choose another --out or delete it"
            )
