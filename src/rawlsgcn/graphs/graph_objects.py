"""Graphs that are objects of other libraries: torch_geometric, networkx and scipy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

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


def raw_from_object(graph: Any) -> RawGraph:
    """The pieces of a ``Data``, a networkx graph or a scipy sparse adjacency matrix.

    Raises:
        RawlsError: If it is none of these, or not square.
    """
    if isinstance(graph, Data) or hasattr(graph, "to_homogeneous"):
        return raw_from_data(graph)
    if is_networkx(graph):
        return from_networkx(graph).raw()
    if sp.issparse(graph):
        known = graph.format in ("csr", "csc", "coo")
        matrix = checked_matrix(graph if known else graph.tocsr(), "the graph")
        return raw_from_adjacency(matrix, "the graph")
    if isinstance(graph, str | Path):
        raise file_for_graph(graph)
    cure = ""
    if isinstance(graph, pd.DataFrame):
        cure = ": write its edges with to_csv('edges.csv', index=False), for rg.read('edges.csv')"
    raise RawlsError(
        "a graph must be a torch_geometric Data, a networkx graph or a scipy sparse matrix, not "
        f"{type(graph).__name__}{cure}"
    )


def raw_from_adjacency(matrix: Any, where: str, name: str = "graph") -> RawGraph:
    """The pieces of an adjacency matrix, whose values are the weights."""
    rows, columns = matrix.shape
    if rows != columns:
        raise RawlsError(
            f"{where}: the adjacency matrix has {rows} rows and {columns} columns, "
            "it must be square, a row and a column for each node"
        )
    coo = matrix.tocoo()
    return RawGraph(name, coo.row, coo.col, coo.data, num_nodes=rows, graph_from=where)


def raw_from_data(data: Any, where: str = "the graph") -> RawGraph:
    """The pieces of a torch_geometric ``Data``."""
    if not isinstance(data, Data):
        hint = ": convert it with .to_homogeneous()" if hasattr(data, "to_homogeneous") else ""
        raise RawlsError(f"a graph must be a torch_geometric Data, not {type(data).__name__}{hint}")
    edge_index, weight = data.edge_index, data.get("edge_weight")
    num_nodes = data.num_nodes if "num_nodes" in data else None
    if edge_index is None and isinstance(data.get("adj_t"), Tensor):
        edge_index, weight = _edges_of(data.adj_t, where)
        num_nodes = data.adj_t.size(0) if num_nodes is None else num_nodes
    if edge_index is None:
        raise RawlsError(f"{where} has no edge_index: give its edges as a (2, edges) tensor")
    source, target = endpoints(as_numpy(edge_index, "edge_index", where), where)
    facts = GraphFacts.of(data)
    facts.edge_attr_ignored |= data.get("edge_attr") is not None
    name, x, y, node_ids = data.get("name"), data.x, data.y, data.get("node_ids")
    class_names = _class_names(data.get("class_names"))
    if y is not None:
        y, words = label_array(as_numpy(y, "y", where), f"{where}: y")
        class_names = words or class_names
        facts.word_labels |= words is not None
    return RawGraph(
        name=name if isinstance(name, str) else "graph",
        source=source,
        target=target,
        weight=None if weight is None else as_numpy(weight, "edge_weight", where),
        num_nodes=None if num_nodes is None else node_count(num_nodes, where),
        x=feature_matrix(x, where),
        y=y,
        masks={key: as_numpy(data[key], key, where) for key in MASKS if data.get(key) is not None},
        node_ids=None if node_ids is None else clean_ids(node_ids, where),
        synthetic=data.get("synthetic") is True,
        class_names=class_names,
        facts=facts,
        graph_from=where,
        features_from=where,
        labels_from=where,
    )


def _edges_of(adjacency: Tensor, where: str) -> tuple[Tensor, Tensor]:
    from torch_geometric.utils import to_edge_index

    if adjacency.dim() != 2 or adjacency.size(0) != adjacency.size(1):
        raise RawlsError(
            f"{where}: adj_t has the shape {tuple(adjacency.shape)}, it must be square, "
            "a row and a column for each node"
        )
    adjacency = checked_tensor(adjacency.detach().cpu(), "adj_t", where)
    if adjacency.layout == torch.strided:
        adjacency = adjacency.to_sparse(layout=torch.sparse_coo)
    edge_index, weight = to_edge_index(adjacency)
    return edge_index, weight


def _class_names(names: Any) -> list[str] | None:
    """The names of the classes; an attribute of that name but of another kind is the user's own."""
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return None
    return list(names) if len(set(names)) == len(names) else None
