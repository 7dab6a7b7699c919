"""Graphs that are objects of other libraries: torch_geometric, networkx and scipy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .catalog import file_for_graph
from .raw_graph import RawGraph, raw_from_data
from .readers.arrays import checked_matrix
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
        try:
            matrix = checked_matrix(graph if known else graph.tocsr())
        except RawlsError as error:
            raise RawlsError(f"the graph {error}") from error
        return raw_from_adjacency(matrix, "the graph")
    if isinstance(graph, str | Path):
        raise file_for_graph(graph)
    raise RawlsError(
        "a graph must be a torch_geometric Data, a networkx graph or a scipy sparse matrix, not "
        f"{type(graph).__name__}"
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
