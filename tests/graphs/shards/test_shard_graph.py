"""Shards read back: the whole graph, or a few numbers of each node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs.graph_fingerprint import fingerprint
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.shard_graph import ShardNodes, graph_of_shards


@pytest.mark.parametrize("weighted", [False, True])
def test_shards_read_back_are_the_graph(weighted: bool, tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    if weighted:
        graph.edge_weight = 1.0 + graph.edge_index.sum(0).float() % 3
    back = graph_of_shards(write_shards(graph, 3, tmp_path))
    assert fingerprint(back) == fingerprint(graph)
    assert torch.equal(back.edge_index, graph.edge_index)
    assert torch.equal(back.x.to_dense(), graph.x.to_dense())
    assert torch.equal(back.test_mask, graph.test_mask)


def test_nodes_have_their_classes_splits_and_degrees(tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    nodes = ShardNodes.of(write_shards(graph, 3, tmp_path))
    assert np.array_equal(nodes.y, graph.y)
    assert np.array_equal(nodes.nodes("val"), graph.val_mask.nonzero().view(-1))
    degree = torch.bincount(graph.edge_index[0], minlength=300)
    assert np.array_equal(nodes.degree, degree)
    assert torch.equal(nodes.graph.train_mask, graph.train_mask)


def test_missing_labels_and_parts_of_the_split_are_errors(tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    graph.val_mask[:] = False
    nodes = ShardNodes.of(write_shards(graph, 1, tmp_path / "a"))
    with pytest.raises(RawlsError, match="have no node in their val_mask"):
        nodes.nodes("val")
    del graph.y
    with pytest.raises(RawlsError, match="have no labels"):
        ShardNodes.of(write_shards(graph, 1, tmp_path / "b"))
