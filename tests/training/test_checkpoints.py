"""Checkpoints: a run goes on as if it had never stopped, or says why it cannot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.training.checkpoints import Position, load_checkpoint, save_checkpoint

RUN = {"seed": 1, "num_neighbors": [10, 10]}


def model(seed: int) -> tuple[nn.Linear, torch.optim.Adam]:
    torch.manual_seed(seed)
    network = nn.Linear(3, 2)
    return network, torch.optim.Adam(network.parameters(), lr=0.1)


def learn(network: nn.Module, optimizer: torch.optim.Adam, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        network(torch.ones(1, 3)).pow(2).sum().backward()
        optimizer.step()


def test_a_restart_is_not_seen_in_the_weights(tmp_path: Path) -> None:
    network, optimizer = model(0)
    learn(network, optimizer, 3)
    save_checkpoint(tmp_path, network, optimizer, Position(1, 2), RUN)
    learn(network, optimizer, 3)
    other, its_optimizer = model(9)
    assert load_checkpoint(tmp_path, other, its_optimizer, RUN) == Position(1, 2)
    learn(other, its_optimizer, 3)
    assert torch.equal(network.weight, other.weight)


def test_only_the_newest_is_kept_and_half_a_one_is_none(tmp_path: Path) -> None:
    network, optimizer = model(0)
    assert load_checkpoint(tmp_path, network, optimizer, RUN) == Position()
    for epoch in (1, 2, 10):
        save_checkpoint(tmp_path, network, optimizer, Position(epoch), RUN)
    # What a process leaves that is killed while it writes.
    (tmp_path / ".rawlsgcn-01234567").mkdir()
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1
    assert load_checkpoint(tmp_path, network, optimizer, RUN) == Position(10)


def test_an_old_one_goes_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while it is removed leaves none that is half there."""
    network, optimizer = model(0)
    save_checkpoint(tmp_path, network, optimizer, Position(1), RUN)

    def half(path: Path, **how: bool) -> None:
        for file in list(Path(path).glob("*"))[:1]:
            file.unlink()

    monkeypatch.setattr(shutil, "rmtree", half)
    save_checkpoint(tmp_path, network, optimizer, Position(2), RUN)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-000002-00000000"]
    monkeypatch.undo()
    save_checkpoint(tmp_path, network, optimizer, Position(3), RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000003-00000000"]


def test_another_runs_checkpoint_and_a_damaged_one_are_told(tmp_path: Path) -> None:
    network, optimizer = model(0)
    save_checkpoint(tmp_path, network, optimizer, Position(1), RUN)
    with pytest.raises(RawlsError, match="its seed is 1, not 2; choose another --out"):
        load_checkpoint(tmp_path, network, optimizer, {**RUN, "seed": 2})
    (kept,) = tmp_path.glob("checkpoint-*")
    for name in ("checkpoint.json", "weights.safetensors", "optimizer.safetensors"):
        content = (kept / name).read_bytes()
        (kept / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(RawlsError, match="delete it to start again"):
            load_checkpoint(tmp_path, network, optimizer, RUN)
        (kept / name).write_bytes(content)


def test_nothing_in_a_checkpoint_is_pickled(tmp_path: Path) -> None:
    """An array in a pickle can be made to show other memory of the process."""
    network, optimizer = model(0)
    learn(network, optimizer, 2)
    save_checkpoint(tmp_path, network, optimizer, Position(1), RUN)
    (kept,) = tmp_path.glob("checkpoint-*")
    assert {path.suffix for path in kept.iterdir()} == {".safetensors", ".json"}
    moments = load_file(kept / "optimizer.safetensors")
    assert torch.equal(moments["0/exp_avg"], optimizer.state[network.weight]["exp_avg"])


def _put(name: str, value: Tensor) -> Callable[[dict[str, Tensor]], object]:
    return lambda tensors: tensors.update({name: value})


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("weights", _put("weight", torch.ones(3, 2))),
        ("weights", _put("weight", torch.ones(2, 3, dtype=torch.int32))),
        ("weights", _put("weight", torch.ones(2, 3, dtype=torch.float64))),
        ("weights", _put("weight", torch.full((2, 3), torch.nan))),
        ("weights", _put("more", torch.ones(1))),
        ("weights", lambda tensors: tensors.pop("bias")),
        ("optimizer", _put("0/exp_avg", torch.ones(2, 2))),
        ("optimizer", _put("0/exp_avg", torch.tensor(1.0))),
        ("optimizer", _put("0/exp_avg_sq", -torch.ones(2, 3))),
        ("optimizer", _put("1/step", torch.tensor(-1.0))),
        ("optimizer", _put("1/step", torch.tensor([1.0, 2.0]))),
        ("optimizer", _put("7/step", torch.tensor(1.0))),
        ("optimizer", _put("two", torch.tensor(1.0))),
        ("optimizer", lambda tensors: tensors.pop("0/exp_avg_sq")),
    ],
)
def test_tensors_that_do_not_fit_change_nothing(
    tmp_path: Path, file: str, change: Callable[[dict[str, Tensor]], object]
) -> None:
    network, optimizer = model(0)
    learn(network, optimizer, 2)
    save_checkpoint(tmp_path, network, optimizer, Position(1), RUN)
    (kept,) = tmp_path.glob("checkpoint-*")
    path = kept / f"{file}.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    other, its_optimizer = model(9)
    before = other.weight.detach().clone()
    with pytest.raises(RawlsError, match="delete it to start again"):
        load_checkpoint(tmp_path, other, its_optimizer, RUN)
    assert torch.equal(other.weight, before)
    learn(other, its_optimizer, 1)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        *(("epoch", value) for value in (-1, 1.5, "1", None, True, 10**30)),
        *(("step", value) for value in (-1, [], float("nan"))),
        *(("run", value) for value in (None, [], "run")),
    ],
)
def test_a_position_that_is_none_is_told(tmp_path: Path, entry: str, value: Any) -> None:
    network, optimizer = model(0)
    save_checkpoint(tmp_path, network, optimizer, Position(1), RUN)
    (kept,) = tmp_path.glob("checkpoint-*")
    about = json.loads((kept / "checkpoint.json").read_text())
    (kept / "checkpoint.json").write_text(json.dumps(about | {entry: value}))
    with pytest.raises(RawlsError, match="delete it to start again") as caught:
        load_checkpoint(tmp_path, network, optimizer, RUN)
    assert "\n" not in str(caught.value)
