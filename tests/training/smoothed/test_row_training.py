"""Training on rows: every row once an epoch, the same steps from memory and from disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from epochs import train_epoch
from torch import nn

from rawlsgcn._core import memory
from rawlsgcn._core.distributed_context import DistributedContext, distributed_context
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.shards.shard_graph import ShardNodes
from rawlsgcn.methods import find_method
from rawlsgcn.training.checkpoints import train_with_checkpoints
from rawlsgcn.training.smoothed import row_order
from rawlsgcn.training.smoothed.row_order import RowOrder, evenly
from rawlsgcn.training.smoothed.row_training import RowTraining
from rawlsgcn.training.smoothed.smoothed_files import take_rows

METHOD = find_method("smoothed-mlp")


class RowsInMemory:
    """Stands for the files of smoothed features."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self.x, self.num_features = x, x.shape[1]
        self.read_rows = 0

    def read(self, first: int, last: int) -> np.ndarray[Any, Any]:
        self.read_rows += last - first
        return self.x[first:last].copy()


@dataclass
class LabeledRows:
    """The nodes of a graph in shards, and their rows."""

    labeled: ShardNodes
    file: RowsInMemory

    @property
    def nodes(self) -> np.ndarray[Any, Any]:
        return self.labeled.nodes("train")

    @property
    def y(self) -> np.ndarray[Any, Any]:
        return self.labeled.y[self.nodes]


def labeled_rows(nodes: int = 500, features: int = 6, classes: int = 3) -> LabeledRows:
    random = np.random.default_rng(0)
    y = np.sort(random.integers(0, classes, nodes))
    x = random.normal(size=(nodes, features)) + 4 * np.eye(classes, features)[y]
    split = np.where(random.random(nodes) < 0.7, 1, 2)
    shards = SimpleNamespace(classes=classes)
    return LabeledRows(ShardNodes(shards, y, split, y), RowsInMemory(x.astype(np.float32)))


def training_of(
    rows: LabeledRows, changes: dict[str, Any] | None = None, **how: Any
) -> RowTraining:
    settings = METHOD.configure({"epochs": 3, **(changes or {})})
    return RowTraining(rows.labeled, rows.file, settings, **({"batch_size": 40} | how))


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of four rows of six features, and windows of ten chunks."""
    monkeypatch.setattr(row_order, "CHUNK_BYTES", 96)
    monkeypatch.setattr(row_order, "WINDOW_CHUNKS", 10)


def test_some_of_many_nodes_are_spread_over_all() -> None:
    assert np.array_equal(evenly(np.arange(5), 10), np.arange(5))
    assert np.array_equal(evenly(np.arange(100), 4), [0, 25, 50, 75])


def weights(training: RowTraining) -> torch.Tensor:
    return torch.cat([each.detach().view(-1) for each in training.kept.parameters()])


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize(("rows", "batch"), [(1, 1), (5, 1), (63, 7), (350, 40), (350, 9999)])
def test_an_epoch_has_every_row_once_in_an_order_of_its_own(rows: int, batch: int) -> None:
    order = RowOrder(rows, 24, batch, seed=3)
    seen = []
    for epoch in range(2):
        taken, steps = [], 0
        for start, window in order.windows(epoch):
            assert start == steps
            steps += window.steps
            assert len(window.order) >= window.steps
            taken.append(window.rows[window.order])
        assert steps == order.steps
        seen.append(np.concatenate(taken))
        assert np.array_equal(np.sort(seen[-1]), np.arange(rows))
    assert rows < 10 or not np.array_equal(*seen)


@pytest.mark.usefixtures("small_windows")
def test_rows_from_disk_give_the_steps_of_rows_in_memory() -> None:
    rows = labeled_rows()
    kept = training_of(rows)
    streamed = training_of(rows)
    streamed.in_memory = False
    assert kept.in_memory
    assert kept.steps == streamed.steps > 5
    for epoch in range(3):
        assert train_epoch(kept, epoch) == train_epoch(streamed, epoch)
    assert torch.equal(weights(kept), weights(streamed))


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("in_memory", [True, False])
def test_processes_share_each_batch_and_read_no_row_twice(
    in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nn.parallel, "DistributedDataParallel", lambda network: network)
    one = list(training_of(labeled_rows()).batches(1))
    shares, read = [], 0
    for rank in range(3):
        rows = labeled_rows()
        training = training_of(rows, context=DistributedContext(rank, 3))
        training.in_memory = in_memory
        shares.append(list(training.batches(1)))
        read += rows.file.read_rows
    assert read < 1.2 * rows.file.x.shape[0]
    for whole, *parts in zip(one, *shares, strict=True):
        assert {part.total for part in parts} == {len(whole.x)}
        x = torch.cat([part.x for part in parts])
        y = torch.cat([part.y for part in parts])
        ours, theirs = (torch.argsort(each[:, 0]) for each in (x, whole.x))
        assert torch.equal(x[ours], whole.x[theirs])
        assert torch.equal(y[ours], whole.y[theirs])


def test_rows_that_fit_are_read_once_and_others_in_every_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = labeled_rows()
    training = training_of(rows)
    for epoch in range(3):
        train_epoch(training, epoch)
    assert rows.file.read_rows <= 500
    monkeypatch.setattr(row_order, "READ_BYTES", 10)
    monkeypatch.setattr(row_order, "WINDOW_CHUNKS", 1)
    monkeypatch.setattr(row_order, "CHUNK_BYTES", 10)
    monkeypatch.setattr(memory, "code_memory", lambda: 0)
    assert not training_of(rows, memory=10_000).in_memory
    with pytest.raises(RawlsError, match=r"^90 bytes of memory are too little to train on rows"):
        training_of(rows, memory=90)


def test_the_first_step_is_that_of_whole_graph_training() -> None:
    """One batch of all rows, without dropout: the gradient of the mean cross entropy."""
    rows = labeled_rows()
    changes = {"dropout": 0.0, "label_smoothing": 0.1}
    training = training_of(rows, changes, batch_size=10**6, dtype=torch.float64)
    (batch,) = training.batches(0)
    training.loss(batch).backward()
    x = torch.from_numpy(take_rows(rows.file, rows.nodes)).double()
    first, second = (
        [each.detach().clone() for each in layer.parameters()] for layer in training.network.layers
    )
    for each in (*first, *second):
        each.requires_grad_()
    logits = (x @ first[0] + first[1]).relu() @ second[0] + second[1]
    y = torch.from_numpy(rows.y)
    nn.functional.cross_entropy(logits, y, label_smoothing=0.1).backward()
    for ours, theirs in zip(training.network.parameters(), (*first, *second), strict=True):
        assert (ours.grad - theirs.grad).abs().max() < 1e-12


def test_dropout_sets_the_asked_share_to_zero() -> None:
    dropout = training_of(labeled_rows()).network.dropout
    for p in (0.5, 0.2):
        dropout.p = p
        dropout.reseed(7)
        out = dropout(torch.ones(1000, 64))
        assert abs(float((out == 0).float().mean()) - p) < 0.01
        assert float(out.max()) == pytest.approx(1 / (1 - p), rel=1e-4)
        dropout.reseed(7)
        assert torch.equal(dropout(torch.ones(1000, 64)), out)
    assert torch.equal(dropout.eval()(torch.ones(2, 2)), torch.ones(2, 2))


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("stop", [1, 7, 12])
def test_a_run_that_is_stopped_gives_the_same_weights(stop: int, tmp_path: Path) -> None:
    rows = labeled_rows()
    whole = training_of(rows)
    train_with_checkpoints(whole, tmp_path / "whole", {})

    class KilledError(Exception):
        pass

    def progress(done: int, total: int, description: str | None = None) -> None:
        if done == stop:
            raise KilledError

    with pytest.raises(KilledError):
        train_with_checkpoints(training_of(rows), tmp_path / "run", {}, 3, progress)
    again = training_of(rows)
    train_with_checkpoints(again, tmp_path / "run", {}, 3)
    assert torch.equal(weights(again), weights(whole))
    assert int(again.mean.n_averaged) == int(whole.mean.n_averaged) > 0


def test_the_seconds_of_a_run_that_goes_on_are_those_of_all_its_parts(tmp_path: Path) -> None:
    rows = labeled_rows()
    first = train_with_checkpoints(training_of(rows), tmp_path, {})
    (kept,) = tmp_path.glob("checkpoint-*/checkpoint.json")
    about = json.loads(kept.read_text())
    assert 0 < about["seconds"] <= first
    kept.write_text(json.dumps(about | {"seconds": 1000.0}))
    longer = {"epochs": 5}
    assert 1000 < train_with_checkpoints(training_of(rows, longer), tmp_path, {}) < 1000 + 600
    (kept,) = tmp_path.glob("checkpoint-*/checkpoint.json")
    about = json.loads(kept.read_text())
    assert about["seconds"] > 1000
    del about["seconds"]  # as an earlier version wrote it
    kept.write_text(json.dumps(about))
    assert 0 < train_with_checkpoints(training_of(rows, longer), tmp_path, {}) < 600


def test_progress_names_the_validation_accuracy(tmp_path: Path) -> None:
    said: list[str | None] = []
    training = training_of(labeled_rows(), {"epochs": 20, "dropout": 0.0})
    train_with_checkpoints(
        training, tmp_path, {}, progress=lambda done, total, words=None: said.append(words)
    )
    assert said[-1].startswith("epoch 20, validation accuracy 9")
    assert training.validation_accuracy() > 0.9


@pytest.mark.parametrize(
    ("changes", "how", "said"),
    [
        ({}, {"average": 2}, "average is a share"),
        ({}, {"context": DistributedContext(0, 50), "batch_size": 40}, "50 processes cannot share"),
    ],
)
def test_mistakes_are_one_sentence(changes: dict[str, Any], how: dict[str, Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        training_of(labeled_rows(), changes, **how)


def gradients(training: RowTraining) -> torch.Tensor:
    """The gradients of the first two steps, after the processes have taken their mean."""
    found = []
    for _, batch in zip(range(2), training.batches(0), strict=False):
        training.optimizer.zero_grad()
        training.loss(batch).backward()
        found += [each.grad.view(-1).clone() for each in training.network.parameters()]
    return torch.cat(found)


def share_of_two(context: DistributedContext) -> dict[str, Any]:
    rows = labeled_rows()
    how = {"dtype": torch.float64, "context": context}
    training = training_of(rows, {"dropout": 0.0, "label_smoothing": 0.1}, **how)
    found = gradients(training)
    return {"gradients": found.numpy(), "rows": rows.file.read_rows, "own": len(training._kept[0])}


@pytest.mark.slow
def test_two_processes_compute_the_gradient_of_one_with_half_of_the_rows_each(
    tmp_path: Path,
) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    run = subprocess.run(
        [*torchrun, "--nproc-per-node", "2", __file__, str(tmp_path)],
        env={**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    one = share_of_two(DistributedContext())
    two = [np.load(tmp_path / f"{rank}.npz") for rank in range(2)]
    for each in two:
        assert np.abs(each["gradients"] - one["gradients"]).max() < 1e-10
        assert abs(int(each["own"]) - one["own"] / 2) <= 10
        assert int(each["rows"]) < 0.6 * one["rows"]
    assert sum(int(each["own"]) for each in two) == one["own"]


if __name__ == "__main__":
    with distributed_context("cpu") as joined:
        np.savez(Path(sys.argv[1]) / f"{joined.rank}.npz", **share_of_two(joined))
