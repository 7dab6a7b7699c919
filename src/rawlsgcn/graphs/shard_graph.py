"""Shards read into memory as one graph, for what needs the whole of it."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from .feature_storage import compact
from .shard_nodes import shard_node_ids
from .shards import Shards
from .splits import MASKS


def graph_of_shards(shards: Shards) -> Data:
    """Read all shards; the inverse of :func:`rawlsgcn.graphs.shards.write_shards`.

    Args:
        shards: The shards.

    Returns:
        The graph, with those of features, labels, masks, weights, ids and names that the
        shards have.

    Raises:
        RawlsError: If a file is missing or damaged.
    """
    parts = shards.open_all()
    counts = np.concatenate([np.diff(part.row_start) for part in parts])
    row = np.repeat(np.arange(shards.num_nodes), counts)
    column = np.concatenate([part.column for part in parts]).astype(np.int64, copy=False)
    graph = Data(
        edge_index=torch.from_numpy(np.stack([row, column])),
        num_nodes=shards.num_nodes,
        name=shards.name,
    )
    given = {
        name: [piece for part in parts if (piece := getattr(part, name)) is not None]
        for name in ("weight", "x", "y", "split")
    }
    arrays = {
        name: torch.from_numpy(np.concatenate(pieces))
        for name, pieces in given.items()
        if len(pieces) == len(parts)
    }
    if "weight" in arrays:
        graph.edge_weight = arrays["weight"]
    if "x" in arrays:
        graph.x = compact(arrays["x"])
    if "y" in arrays:
        graph.y = arrays["y"]
    ids = shard_node_ids(shards)
    if ids is not None:
        graph.node_ids = ids
    if shards.class_names is not None:
        graph.class_names = shards.class_names
    if "split" in arrays and bool(arrays["split"].any()):
        for number, name in enumerate(MASKS, start=1):
            graph[name] = arrays["split"] == number
    return graph
