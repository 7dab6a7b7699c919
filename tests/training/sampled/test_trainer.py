"""Sampled training: the same run on any number of processes and workers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from epochs import train_epoch
from torch import Tensor
from torch_geometric.data import Data

from rawlsgcn._core.distributed_context import DistributedContext
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import balance
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.methods import find_method, with_changes
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining


@pytest.fixture(scope="module")
def graph() -> Data:
    return synthetic(400, average_degree=12, features=60, words=6)


def training_of(source: Source, name: str = "rawlsgcn-grad", **how: object) -> SampledTraining:
    method = find_method(name)
    settings = with_changes(method.defaults, how.pop("settings", {"dropout": 0.0}))
    options = {"num_neighbors": [4, 3], "batch_size": 50, "dtype": torch.float64, **how}
    return SampledTraining(method, source, settings, **options)


def gradient(training: SampledTraining, epoch: int = 0) -> Tensor:
    batch = next(iter(training.batches(epoch)))
    training.network.zero_grad()
    training.loss(batch).backward()
    return torch.cat([p.grad.view(-1) for p in training.network.parameters()])


def test_the_shares_of_three_processes_make_one_process_on_the_joined_batch(graph: Data) -> None:
    source = Source.of(graph)
    whole = gradient(training_of(source))
    shares = []
    for rank in range(3):
        training = training_of(source)
        # Without a group to join: the wrapped model would only take the mean that is taken below.
        training.context = DistributedContext(rank, 3)
        shares.append(gradient(training))
    torch.testing.assert_close(torch.stack(shares).mean(0), whole, rtol=1e-10, atol=1e-12)


def test_workers_and_shards_change_nothing(graph: Data, tmp_path: Path) -> None:
    source = Source.of(graph)
    one = training_of(source, settings={}, dtype=torch.float32)
    two = training_of(source, settings={}, dtype=torch.float32, workers=2)
    shards = write_shards(graph, 3, tmp_path)
    with pytest.raises(RawlsError, match="run torchrun --nproc-per-node 3"):
        training_of(Source.of_shards(shards))
    scale = balance(graph.edge_index, num_nodes=400).scale.numpy()
    for place in range(3):
        shards.write_scale(place, scale[shards.cuts[place] : shards.cuts[place + 1]])
    parts = Source.of_shards(shards)
    three = training_of(parts, settings={}, dtype=torch.float32)
    for epoch in range(2):
        loss = train_epoch(one, epoch)
        assert loss == train_epoch(two, epoch)
        assert loss == pytest.approx(train_epoch(three, epoch), rel=1e-6)
    assert torch.equal(one.logits(), two.logits())
    torch.testing.assert_close(one.logits(), three.logits(), rtol=1e-4, atol=1e-5)


def test_every_training_node_is_seen_once_an_epoch_and_epochs_differ(graph: Data) -> None:
    training = training_of(Source.of(graph), batch_size=7)
    orders = []
    for epoch in range(2):
        seeds = []
        for batch in training.batches(epoch):
            rows = batch.blocks.layers[-1].shape[0]
            seeds += batch.blocks.nodes[:rows].tolist()
        assert sorted(seeds) == graph.train_mask.nonzero().view(-1).tolist()
        orders.append(seeds)
    assert orders[0] != orders[1]


def test_it_learns(graph: Data) -> None:
    training = training_of(Source.of(graph), "rawlsgcn-graph", settings={})
    losses = [train_epoch(training, epoch) for epoch in range(30)]
    assert np.mean(losses[-5:]) < 0.8 * losses[0]


def test_the_weights_kept_are_the_mean_of_the_last_steps(graph: Data) -> None:
    training = training_of(
        Source.of(graph), settings={"epochs": 4}, batch_size=60, average=0.5, dtype=torch.float32
    )
    assert training.kept is training.network
    weights = []
    for epoch in range(4):
        for number, batch in enumerate(training.batches(epoch)):
            training.step(batch, epoch, number)
            weights.append(training.network.layers[0].weight.detach().clone())
    assert len(weights) == training.total == 8
    mean = torch.stack(weights[4:]).mean(0)
    torch.testing.assert_close(training.kept.layers[0].weight, mean)

    last = training_of(Source.of(graph), settings={"epochs": 1}, average=0)
    train_epoch(last, 0)
    assert last.kept is last.network


def test_what_cannot_be_trained_is_told(graph: Data) -> None:
    source = Source.of(graph)
    with pytest.raises(RawlsError, match="tail-gnn cannot be trained on sampled neighborhoods"):
        training_of(source, "tail-gnn")
    with pytest.raises(RawlsError, match="no early stopping"):
        training_of(source, settings={"patience": 5})
    with pytest.raises(RawlsError, match="from 0 to 1, not 2"):
        training_of(source, average=2)
    with pytest.raises(RawlsError, match="3 processes cannot share batches of 2"):
        training_of(source, batch_size=2, context=DistributedContext(0, 3))


def test_shards_without_labels_cannot_be_trained_on(graph: Data, tmp_path: Path) -> None:
    bare = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    shards = write_shards(bare, 2, tmp_path)
    with pytest.raises(RawlsError, match="have no labels"):
        Source.of_shards(shards)
    with pytest.raises(RawlsError, match="have no features"):
        Source.of_shards(shards, labeled=False)
