"""Graphs in torch_geometric's stores give the shards of the same graph in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.testing import MyFeatureStore, MyGraphStore

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.graph_fingerprint import fingerprint
from rawlsgcn.graphs.readers import features
from rawlsgcn.graphs.splits import MASKS
from rawlsgcn.graphs.streaming import store_shards
from rawlsgcn.graphs.streaming.store_shards import shard_stores

GRAPH = rg.synthetic(300)


def stores(edge_index: torch.Tensor = GRAPH.edge_index) -> tuple[MyFeatureStore, MyGraphStore]:
    features, edges = MyFeatureStore(), MyGraphStore()
    for key in ("x", "y", *MASKS):
        features.put_tensor(GRAPH[key], group_name="paper", attr_name=key, index=None)
    edge_type = ("paper", "cites", "paper")
    edges.put_edge_index(edge_index, edge_type=edge_type, layout="coo", size=(300, 300))
    return features, edges


def test_the_shards_are_those_of_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "CELLS", 10_000)
    monkeypatch.setattr(store_shards, "ROWS", 100)
    shards = shard_stores(tmp_path / "shards", 3, *stores(), name="papers")
    assert shards.fingerprint == fingerprint(GRAPH)
    assert shards.name == "papers"


def test_a_store_without_labels_is_an_unlabeled_graph(tmp_path: Path) -> None:
    features, edges = stores()
    features.remove_tensor(group_name="paper", attr_name="y", index=None)
    shards = shard_stores(tmp_path / "shards", 3, features, edges)
    assert shards.classes == 0
    with pytest.raises(RawlsError, match="have no labels, so that there is nothing to learn"):
        shards.require_labels()


def test_flawed_stores_are_refused(tmp_path: Path) -> None:
    features, edges = stores(torch.tensor([[0, 1], [1, 300]]))
    with pytest.raises(RawlsError, match=r"arc 1 \(counted from 0\) is between 1 and 300"):
        shard_stores(tmp_path / "shards", 3, features, edges)
    with pytest.raises(RawlsError, match="the feature store has no x"):
        shard_stores(tmp_path / "shards", 3, MyFeatureStore(), edges)
    features.put_tensor(GRAPH.x, group_name="author", attr_name="x", index=None)
    with pytest.raises(RawlsError, match="x of several types of nodes"):
        shard_stores(tmp_path / "shards", 3, features, edges)
    edges.put_edge_index(GRAPH.edge_index, edge_type=("a", "b", "c"), layout="coo", size=(300, 300))
    with pytest.raises(RawlsError, match="2 types of edges"):
        shard_stores(tmp_path / "shards", 3, stores()[0], edges)
    assert list(tmp_path.iterdir()) == []
