"""Graphs in parts that have names, and as objects of torch_geometric, networkx and scipy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_edge_index

from .._core.errors import RawlsError
from .catalog import MASKS, file_for_graph
from .notes import GraphFacts
from .raw_graph import (
    RawGraph,
    as_numpy,
    checked_tensor,
    clean_ids,
    endpoints,
    feature_matrix,
    node_count,
)
from .readers.arrays import checked_matrix
from .readers.labels import label_array
from .readers.node_link import from_networkx, is_networkx

PARTS = (
    "edge_index", "edge_weight", "edge_attr", "adj_t", "num_nodes", "x", "y", "node_ids", "name",
    "class_names", "facts", "synthetic", *MASKS,
)  # fmt: skip
"""All of a ``Data`` that is read."""


def raw_from_object(graph: Any) -> RawGraph:
    """The pieces of a ``Data``, a networkx graph or a scipy sparse adjacency matrix.

    Raises:
        RawlsError: If it is none of these, or not square.
    """
    if isinstance(graph, Data):
        # Without the number of nodes that torch_geometric guesses.
        parts = {key: graph.get(key) for key in PARTS if key != "num_nodes" or key in graph}
        return raw_from_parts(parts, "the graph")
    if is_networkx(graph):
        return from_networkx(graph).raw()
    if sp.issparse(graph):
        known = graph.format in ("csr", "csc", "coo")
        matrix = checked_matrix(graph if known else graph.tocsr(), "the graph")
        return raw_from_parts({"adj_t": matrix}, "the graph")
    if isinstance(graph, str | Path):
        raise file_for_graph(graph)
    cure = ": convert it with .to_homogeneous()" if hasattr(graph, "to_homogeneous") else ""
    if isinstance(graph, pd.DataFrame):
        cure = ": write its edges with to_csv('edges.csv', index=False), for rg.read('edges.csv')"
    raise RawlsError(
        "a graph must be a torch_geometric Data, a networkx graph or a scipy sparse matrix, not "
        f"{type(graph).__name__}{cure}"
    )


def raw_from_parts(parts: Mapping[str, Any], where: str, name: str = "graph") -> RawGraph:
    """The pieces of a graph by the names that they have in a ``Data``; others are ignored.

    ``adj_t`` may also be a scipy matrix whose indices are sound.
    """
    raw = _edges(parts, where)
    raw.name = parts["name"] if isinstance(parts.get("name"), str) else name
    raw.facts = GraphFacts.of(parts)
    raw.facts.edge_attr_ignored |= parts.get("edge_attr") is not None
    raw.synthetic = parts.get("synthetic") is True
    raw.x = feature_matrix(parts.get("x"), where)
    present = [key for key in MASKS if parts.get(key) is not None]
    raw.masks = {key: as_numpy(parts[key], key, where) for key in present}
    if parts.get("node_ids") is not None:
        raw.node_ids = clean_ids(parts["node_ids"], where)
    raw.class_names = _class_names(parts.get("class_names"))
    if parts.get("y") is not None:
        raw.y, words = label_array(as_numpy(parts["y"], "y", where), f"{where}: y")
        raw.class_names = words or raw.class_names
        raw.facts.word_labels |= words is not None
    return raw


def _edges(parts: Mapping[str, Any], where: str) -> RawGraph:
    edge_index, weight, nodes = (
        parts.get(key) for key in ("edge_index", "edge_weight", "num_nodes")
    )
    adjacency: Any = parts.get("adj_t")
    if edge_index is None and (isinstance(adjacency, Tensor) or sp.issparse(adjacency)):
        shape = tuple(adjacency.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise RawlsError(
                f"{where}: the adjacency matrix has the shape {shape}, it must be square, a row "
                "and a column for each node"
            )
        nodes = shape[0] if nodes is None else nodes
        if not isinstance(adjacency, Tensor):
            coo = adjacency.tocoo()
            return RawGraph("", coo.row, coo.col, coo.data, num_nodes=nodes, graph_from=where)
        adjacency = checked_tensor(adjacency.detach().cpu(), "adj_t", where)
        dense = adjacency.layout == torch.strided
        edge_index, weight = to_edge_index(adjacency.to_sparse() if dense else adjacency)
    if edge_index is None:
        raise RawlsError(f"{where} has no edge_index: give its edges as a (2, edges) tensor")
    raw = RawGraph("", *endpoints(edge_index, where), graph_from=where)
    raw.weight = None if weight is None else as_numpy(weight, "edge_weight", where)
    raw.num_nodes = None if nodes is None else node_count(nodes, where)
    return raw


def _class_names(names: Any) -> list[str] | None:
    """The names of the classes; an attribute of that name but of another kind is the user's own."""
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return None
    return list(names) if len(set(names)) == len(names) else None
