"""Shards of a graph in torch_geometric's feature and graph stores, such as databases."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.feature_store import TensorAttr

from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ..catalog import MASKS
from ..raw_graph import RawGraph, endpoints
from ..readers.edge_lists import EdgeBatch, array_batches
from ..readers.features import ordered_batches
from ..readers.node_tables import ROWS
from ..shards.shards import Shards, require_own
from ..splits import SplitChoice, parse_split
from .build_shards import NO_ARCS, GraphStream, build_shards

Array = NDArray[Any]


def shard_stores(
    folder: str | Path,
    count: int,
    feature_store: FeatureStore,
    graph_store: GraphStore,
    *,
    name: str = "graph",
    split: SplitChoice = None,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> Shards:
    """Cut a graph of one type of nodes and edges into shards, through its stores' interface.

    Features are asked for a block of rows at a time. Edges and labels come as the stores give
    them, as whole tensors. For a ``Data``, which is in memory, use :func:`..shards.write_shards`.

    Args:
        folder: Where to write the shards, as for :func:`..shards.write_shards`.
        count: The number of shards.
        feature_store: A store of the tensor ``x``, and of ``y`` and masks if there are any.
        graph_store: A store of one type of edges, in any layout.
        name: The name of the graph.
        split: As for :func:`rawlsgcn.read`.
        memory: The bytes to use for batches, about.
        progress: Called after each batch.

    Returns:
        The shards.

    Raises:
        RawlsError: If a tensor is missing, or the graph is flawed.
    """
    require_own(folder)
    where = "the graph store"
    attributes: dict[str, TensorAttr] = {}
    for each in feature_store.get_all_tensor_attrs():
        if attributes.setdefault(str(each.attr_name), each) is not each:
            raise RawlsError(f"the feature store has {each.attr_name} of several types of nodes")
    if "x" not in attributes:
        raise RawlsError("the feature store has no x")
    rows, columns, _ = graph_store.coo()
    if len(rows) != 1:
        raise RawlsError(f"{where} has {len(rows)} types of edges: give one of a single type")
    ends = torch.stack([next(iter(rows.values())), next(iter(columns.values()))]).numpy()
    source, target = endpoints(ends, where)
    x = {"group_name": attributes["x"].group_name, "attr_name": attributes["x"].attr_name}
    size = feature_store.get_tensor_size(**x, index=None)
    if size is None or len(size) != 2 or not size[1]:
        raise RawlsError(f"the feature store has an x of the shape {size}: it must be a matrix")
    nodes, width = map(int, size)

    def whole(name: str) -> Array:
        of = attributes[name]
        tensor = feature_store.get_tensor(
            group_name=of.group_name, attr_name=of.attr_name, index=None
        )
        return np.asarray(tensor)

    def edge_batches() -> Iterator[EdgeBatch]:
        parts = (slice(first, first + ROWS) for first in range(0, len(source), ROWS))
        return array_batches(where, nodes, ((source[part], target[part]) for part in parts))

    def feature_blocks(rows: int) -> Iterator[Any]:
        for first in range(0, nodes, rows):
            index = torch.arange(first, min(first + rows, nodes))
            yield feature_store.get_tensor(**x, index=index)

    raw = RawGraph(name, NO_ARCS, NO_ARCS, graph_from=where)
    raw.labels_from = "the feature store"
    if "y" in attributes:
        raw.y = whole("y")
    raw.masks = {key: whole(key) for key in MASKS if key in attributes}
    stream = GraphStream(
        raw,
        nodes,
        width,
        edge_batches,
        lambda: ordered_batches(Path(raw.labels_from), (nodes, width), feature_blocks),
        # Nobody knows whether a store is still the same: a killed run begins again.
        {"once": secrets.token_hex()},
        num_arcs=len(source),
    )
    return build_shards(folder, count, stream, parse_split(split), memory, progress)[0]
