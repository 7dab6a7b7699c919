"""Folders of shards, and the checkpoints of training on them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch_geometric.data import Data

from rawlsgcn.balancing.distributed import balance_shards
from rawlsgcn.graphs import check
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.methods import find_method
from rawlsgcn.training.checkpoints import Position, load_checkpoint, save_checkpoint
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining
from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm

from ..reader import Files, Reader
from .models import _graph

_RUN = {"seed": 1, "num_neighbors": [2, 2]}


@cache
def _weighted() -> Data:
    graph = _graph()
    edges = graph.edge_index
    parts = {key: graph[key] for key in ("x", "y", "train_mask", "val_mask", "test_mask")}
    return check(Data(edge_index=edges, edge_weight=1.0 + edges.sum(0), **parts))


def _training(source: Source) -> SampledTraining:
    method = find_method("gcn" if source.scale is None else "rawlsgcn-grad")
    return SampledTraining(method, source, method.defaults, num_neighbors=[2, -1], batch_size=2)


def _read_shards(folder: Path) -> object:
    """Balance them, smooth them and train on them for a step: every index is followed."""
    shards = Shards(folder)
    balance_shards(shards, max_iterations=20)
    smooth_shards(shards, SmoothedForm("renormalized", 0.1, 1, row_normalized=True))
    training = _training(Source.of_shards(shards))
    return training.loss(next(training.batches(0))), training.logits()


def _shards() -> list[Files]:
    seeds = []
    for graph, count in ((_graph(), 1), (_graph(), 2), (_weighted(), 1), (_weighted(), 3)):
        with TemporaryDirectory() as folder:
            shards = write_shards(graph, count, folder)
            for place in range(count - count % 2):  # of an even number
                rows = shards.cuts[place + 1] - shards.cuts[place]
                shards.write_scale(place, np.full(rows, 0.5))
            seeds.append(_files(folder))
    return seeds


def _network() -> tuple[torch.nn.Module, torch.optim.Adam]:
    network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    return network, torch.optim.Adam(network.parameters(), lr=0.1)


def _learn(network: torch.nn.Module, optimizer: torch.optim.Adam) -> None:
    network(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def _checkpoints() -> list[Files]:
    seeds = []
    for steps in (0, 2):
        network, optimizer = _network()
        for _ in range(steps):
            _learn(network, optimizer)
        with TemporaryDirectory() as folder:
            save_checkpoint(Path(folder), network, optimizer, Position(1, 0, 9), _RUN)
            seeds.append(_files(next(Path(folder).iterdir())))
    return seeds


def _read_checkpoint(folder: Path) -> object:
    network, optimizer = _network()
    with TemporaryDirectory() as around:
        (Path(around) / "checkpoint-000001-00000000").symlink_to(folder)
        position = load_checkpoint(Path(around), network, optimizer, _RUN)
    _learn(network, optimizer)
    return position


def _files(folder: str | Path) -> Files:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


READERS = [
    Reader("shards", _shards, _read_shards),
    Reader("checkpoint", _checkpoints, _read_checkpoint, known_as=("checkpoint",)),
]
