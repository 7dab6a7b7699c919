"""The synthetic graph in shards: the model of the graph in memory, and one graph a seed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import check
from rawlsgcn.graphs.graph_fingerprint import fingerprint
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.graphs.splits import MASKS
from rawlsgcn.graphs.streaming import arc_sorter, build_shards
from rawlsgcn.graphs.streaming import synthetic_shards as module
from rawlsgcn.graphs.streaming.synthetic_shards import synthetic_shards


def draw(folder: Path, count: int = 3, **changes: Any) -> Shards:
    settings: dict[str, Any] = {"num_nodes": 3000, "average_degree": 8, "features": 60}
    return synthetic_shards(folder, count, **(settings | changes))


def in_memory(shards: Shards) -> Data:
    parts = shards.open_all()
    rows = [np.repeat(np.arange(p.first, p.last), np.diff(p.row_start)) for p in parts]
    columns = np.concatenate([part.column for part in parts])
    split = np.concatenate([part.split for part in parts])
    graph = Data(
        edge_index=torch.from_numpy(np.stack([np.concatenate(rows), columns])),
        x=torch.from_numpy(np.concatenate([part.x for part in parts])),
        y=torch.from_numpy(np.concatenate([part.y for part in parts])),
        num_nodes=shards.num_nodes,
        name=shards.name,
    )
    for number, key in enumerate(MASKS, start=1):
        graph[key] = torch.from_numpy(split == number)
    return graph


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("features", [60, 1200])  # of which the second is kept as sparse in memory
def test_the_files_are_those_of_the_same_graph_in_memory(features: int, tmp_path: Path) -> None:
    shards = draw(tmp_path / "streamed", features=features, words=20)
    graph = check(in_memory(shards), split="stored")
    assert shards.fingerprint == fingerprint(graph)
    write_shards(graph, 3, tmp_path / "whole")
    assert contents(tmp_path / "streamed") == contents(tmp_path / "whole")


def test_the_same_seed_gives_the_same_files_whatever_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EDGES", 1000)
    monkeypatch.setattr(module, "_CELLS", 5000)
    draw(tmp_path / "one", seed=5, memory=10**9)
    monkeypatch.setattr(arc_sorter, "_FEWEST", 2000)
    draw(tmp_path / "two", seed=5, memory=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert draw(tmp_path / "other", seed=6).fingerprint != Shards(tmp_path / "one").fingerprint


def test_it_is_the_model_of_the_graph_in_memory(tmp_path: Path) -> None:
    """Degrees, homophily, words and classes agree with those of ``rg.synthetic``."""
    settings: dict[str, Any] = {"average_degree": 8, "features": 60, "words": 8.0}
    graph = in_memory(draw(tmp_path, num_nodes=12_000, **settings))
    whole = rg.synthetic(12_000, **settings)
    for figure, tolerance in (
        (lambda g: g.edge_index.shape[1], 0.03),
        (lambda g: float((g.y[g.edge_index[0]] == g.y[g.edge_index[1]]).float().mean()), 0.03),
        (lambda g: float(g.x.mean()), 0.02),
        (lambda g: float(torch.bincount(g.edge_index[0]).float().square().mean()), 0.2),
        (lambda g: float((torch.bincount(g.edge_index[0]) == 0).float().mean()), 0.25),
    ):
        assert figure(graph) == pytest.approx(figure(whole), rel=tolerance)
    # A class's own words are more frequent in it than elsewhere.
    topic = graph.x[graph.y == 2][:, 20:30].mean() / graph.x[graph.y != 2][:, 20:30].mean()
    assert topic > 1.2


def test_nothing_is_left_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build_shards.ShardWriter, "write_arcs", full)
    with pytest.raises(RawlsError, match="No space left"):
        draw(tmp_path / "shards")
    assert list(tmp_path.iterdir()) == []


def test_arguments_out_of_range_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(RawlsError, match="needs 120 nodes"):
        draw(tmp_path / "shards", num_nodes=100)
    with pytest.raises(RawlsError, match="a --count of 1 to 3,000"):
        draw(tmp_path / "shards", 4000)
    assert list(tmp_path.iterdir()) == []
