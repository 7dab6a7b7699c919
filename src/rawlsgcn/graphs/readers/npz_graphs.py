"""Graphs in one .npz file: an adjacency matrix or an edge index, features, labels and masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..from_data import endpoints, node_count
from ..raw_graph import Found
from .arrays import LABEL_KEYS, Archive

Array = NDArray[Any]


def read_archive(path: Path) -> Found:
    """The graph in an .npz file, under the keys that docs/graphs.md lists."""
    archive = Archive(path)
    whole = archive.whole()
    if whole is not None:
        return _from_matrix(path, whole)
    matrix = archive.csr("adj")
    if matrix is not None:
        found = _from_matrix(path, matrix)
    elif "edge_index" in archive.keys:
        found = Found(path.stem, *endpoints(archive["edge_index"], path.name))
        if "edge_weight" in archive.keys:
            found.weight = archive["edge_weight"]
        if "num_nodes" in archive.keys:
            found.num_nodes = _count(archive["num_nodes"], path)
    else:
        raise RawlsError(
            f"{path} has no graph in it: expected the keys adj_data, adj_indices, adj_indptr and "
            "adj_shape, or edge_index, or a file of scipy.sparse.save_npz"
        )
    found.x, found.y, found.masks = archive.features(), archive.first(LABEL_KEYS), archive.masks()
    if "node_ids" in archive.keys:
        found.node_ids = archive["node_ids"]
    found.graph_from = found.features_from = found.labels_from = path.name
    return found


def _from_matrix(path: Path, matrix: Any) -> Found:
    rows, columns = matrix.shape
    if rows != columns:
        raise RawlsError(
            f"{path}: the adjacency matrix has {rows} rows and {columns} columns, "
            "it must be square, a row and a column for each node"
        )
    coo = matrix.tocoo()
    return Found(path.stem, coo.row, coo.col, coo.data, num_nodes=rows, graph_from=path.name)


def _count(value: Array, path: Path) -> int:
    if value.size != 1 or value.dtype.kind not in "iu":
        raise RawlsError(f"{path}: num_nodes must be one integer")
    return node_count(value.reshape(-1)[0], path.name)
