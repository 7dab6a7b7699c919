"""Shards of a graph in torch_geometric's feature and graph stores, such as databases."""

from __future__ import annotations

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
from ..readers.node_numbers import NodeNumbers
from ..shards.shards import Shards, require_own
from ..splits import SplitChoice, parse_split
from .edge_batches import ROWS, EdgeArrays
from .feature_batches import OrderedFeatures
from .file_shards import GraphStreams, write_streams

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
    features = _stored_features(feature_store, attributes["x"])
    arcs = len(source)
    parts = [slice(first, first + ROWS) for first in range(0, arcs, ROWS)]
    edges = EdgeArrays(Path(where), arcs, lambda: ((source[each], target[each]) for each in parts))
    empty = np.empty(0, np.int64)
    raw = RawGraph(name, empty, empty, graph_from=where, labels_from="the feature store")
    if "y" in attributes:
        raw.y = _whole(feature_store, attributes["y"])
    raw.masks = {key: _whole(feature_store, attributes[key]) for key in MASKS if key in attributes}
    numbers = NodeNumbers(np.arange(features.num_rows))
    streams = GraphStreams(raw, numbers, where, edges, features, ())
    return write_streams(folder, count, streams, parse_split(split), memory, progress)[0]


def _whole(store: FeatureStore, attribute: TensorAttr) -> Array:
    tensor = store.get_tensor(
        group_name=attribute.group_name, attr_name=attribute.attr_name, index=None
    )
    return np.asarray(tensor)


def _stored_features(store: FeatureStore, attribute: TensorAttr) -> OrderedFeatures:
    """The tensor ``x`` of a feature store, some rows at a time."""
    of = {"group_name": attribute.group_name, "attr_name": attribute.attr_name}
    size = store.get_tensor_size(**of, index=None)
    if size is None or len(size) != 2 or not size[1]:
        raise RawlsError(f"the feature store has an x of the shape {size}: it must be a matrix")
    nodes = int(size[0])

    def blocks(rows: int) -> Iterator[Any]:
        for first in range(0, nodes, rows):
            yield store.get_tensor(**of, index=torch.arange(first, min(first + rows, nodes)))

    return OrderedFeatures(Path("the feature store"), size, blocks)
