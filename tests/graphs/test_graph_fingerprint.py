"""The fingerprint of a graph: another one for a change in any of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.graph_fingerprint import fingerprint
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.training.sampled.sources import Source


def changed(part: str) -> Data:
    graph = synthetic(300)
    graph.x = graph.x.to_dense() if part == "features" else graph.x
    if part == "features":
        graph.x[0, 0] += 1
    elif part == "labels":
        graph.y[:2] = graph.y[:2].flip(0) + 1
    elif part == "split":
        graph.train_mask, graph.val_mask = graph.val_mask, graph.train_mask
    else:
        graph.edge_weight = torch.ones(graph.edge_index.shape[1])
    return graph


@pytest.mark.parametrize("part", ["edges", "features", "labels", "split"])
def test_every_part_counts_and_is_named(part: str, tmp_path: Path) -> None:
    one, two = (fingerprint(graph).split(", ")[2:] for graph in (synthetic(300), changed(part)))
    assert [a.split()[0] for a, b in zip(one, two, strict=True) if a != b] == [part]
    ours = Source.of_shards(write_shards(changed(part), 2, tmp_path)).fingerprint
    assert ours == Source.of(changed(part)).fingerprint != Source.of(synthetic(300)).fingerprint


def test_dense_and_sparse_features_have_one_fingerprint() -> None:
    sparse, dense = (synthetic(300, features=2000, sparse=form) for form in (True, False))
    assert (sparse.x.layout, dense.x.layout) == (torch.sparse_csr, torch.strided)
    assert fingerprint(sparse) == fingerprint(dense)
