"""Checkpoints: a run goes on as if it had never stopped, or says why it cannot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from rawlsgcn.errors import RawlsError
from rawlsgcn.training.checkpoints import Position, load_checkpoint, save_checkpoint

RUN = {"seed": 1, "fan_out": [10, 10]}


def model(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    network = nn.Linear(3, 2)
    return network, torch.optim.Adam(network.parameters(), lr=0.1)


def learn(network: nn.Module, optimiser: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimiser.zero_grad()
        network(torch.ones(1, 3)).pow(2).sum().backward()
        optimiser.step()


def test_a_restart_is_not_seen_in_the_weights(tmp_path: Path) -> None:
    network, optimiser = model(0)
    learn(network, optimiser, 3)
    save_checkpoint(tmp_path, network, optimiser, Position(1, 2), RUN)
    learn(network, optimiser, 3)
    other, its_optimiser = model(9)
    assert load_checkpoint(tmp_path, other, its_optimiser, RUN) == Position(1, 2)
    learn(other, its_optimiser, 3)
    assert torch.equal(network.weight, other.weight)


def test_only_the_newest_is_kept_and_half_a_one_is_none(tmp_path: Path) -> None:
    network, optimiser = model(0)
    assert load_checkpoint(tmp_path, network, optimiser, RUN) == Position()
    for epoch in (1, 2, 10):
        save_checkpoint(tmp_path, network, optimiser, Position(epoch), RUN)
    # What a process leaves that is killed while it writes.
    (tmp_path / ".rawlsgcn-01234567").mkdir()
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1
    assert load_checkpoint(tmp_path, network, optimiser, RUN) == Position(10)


def test_an_old_one_goes_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while it is removed leaves none that is half there."""
    network, optimiser = model(0)
    save_checkpoint(tmp_path, network, optimiser, Position(1), RUN)

    def half(path: Path, **how: bool) -> None:
        for file in list(Path(path).glob("*"))[:1]:
            file.unlink()

    monkeypatch.setattr(shutil, "rmtree", half)
    save_checkpoint(tmp_path, network, optimiser, Position(2), RUN)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-000002-00000000"]
    monkeypatch.undo()
    save_checkpoint(tmp_path, network, optimiser, Position(3), RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000003-00000000"]


def test_another_runs_checkpoint_and_a_damaged_one_are_told(tmp_path: Path) -> None:
    network, optimiser = model(0)
    save_checkpoint(tmp_path, network, optimiser, Position(1), RUN)
    with pytest.raises(RawlsError, match="its seed is 1, not 2; choose another --out"):
        load_checkpoint(tmp_path, network, optimiser, {**RUN, "seed": 2})
    (kept,) = tmp_path.glob("checkpoint-*")
    for name in ("checkpoint.json", "weights.safetensors", "optimiser.pt"):
        content = (kept / name).read_bytes()
        (kept / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(RawlsError, match="delete it to begin anew"):
            load_checkpoint(tmp_path, network, optimiser, RUN)
        (kept / name).write_bytes(content)
