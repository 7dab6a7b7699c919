"""The user's own graphs, whatever file they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading
from ..._core.threads import fork_safe_threads
from ..raw_graph import (
    RawGraph,
    check_count,
    clean_ids,
    endpoints,
    highest,
    node_count,
    raw_from_data,
    stored_in,
)
from ..splits import require_split
from ..validation import validate
from .arrays import LABEL_KEYS, Archive
from .edge_lists import attach, read_edge_list
from .node_tables import NodeTable, read_features, read_labels, with_class_names
from .table_formats import TABLES
from .torch_files import read_saved

Array = NDArray[Any]
FORMATS = (*TABLES, ".npz", ".pt")


@fork_safe_threads()
def read(
    path: str | Path,
    *,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    split: str | None = None,
    sparse: bool = False,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Read a graph from a file; docs/graphs.md describes the formats.

    Args:
        path: An .npz file, an edge list (.csv, .tsv, .parquet), or a saved ``Data`` (.pt).
        features: A file of features (.csv, .tsv, .parquet with node ids; .npy or .npz in the
            order of the nodes), used instead of those in ``path``.
        labels: A file of labels in the same formats, used instead of those in ``path``.
        split: 'stored', 'paper' or 'random'; by default the stored masks if there are any, else
            the paper's split if the graph is large enough for it, else a random one.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero, instead of
            dense.
        need_features: Raise an error if features are missing or flawed; balancing needs none.
        need_labels: Raise an error if labels or edges are missing or flawed; prediction needs
            none.

    Returns:
        A validated graph, its nodes in the order that docs/graphs.md describes.

    Raises:
        RawlsError: If a file is missing, damaged or in another format, or the graph is flawed.
    """
    require_split(split)
    beside = [Path(side).name for side in (features, labels) if side is not None]
    with reading(path, "a graph", beside):
        found = read_raw_graph(path, features=features, labels=labels)
        return validate(
            found,
            split=split,
            sparse=sparse,
            need_features=need_features,
            need_labels=need_labels,
        )


def read_raw_graph(
    path: str | Path, *, features: str | Path | None = None, labels: str | Path | None = None
) -> RawGraph:
    """What the files hold, before any check: the edges still have their directions."""
    path = Path(path).expanduser()
    for file in (path, features, labels):
        if file is not None and not Path(file).expanduser().is_file():
            what = "is a folder, not a file" if Path(file).is_dir() else "does not exist"
            raise RawlsError(f"{file} {what}")
    label_side = None if labels is None else read_labels(Path(labels).expanduser())
    feature_side = None if features is None else read_features(Path(features).expanduser())
    sides = [side for side in (label_side, feature_side) if side is not None]

    suffix = path.suffix.lower()
    if suffix in TABLES:
        found = read_edge_list(path, sides)
    elif suffix == ".npz":
        found = _with_sides(_read_npz(path), sides)
    elif suffix in (".pt", ".pth"):
        found = _with_sides(raw_from_data(read_saved(path), path.name), sides)
    else:
        raise RawlsError(f"{path}: graphs are read from {', '.join(FORMATS)} files")
    if label_side is not None:
        found.y, found.labels_from = label_side.values, label_side.path.name
        found.class_names = label_side.class_names
        # Masks beside new labels are the user's; those stored with the old ones still hold.
        found.masks = label_side.masks or found.masks
    if feature_side is not None:
        found.x, found.features_from = feature_side.values, feature_side.path.name
    for side in sides:
        side.add_facts(found.facts)
    found.facts.word_labels |= suffix not in (".pt", ".pth") and found.class_names is not None
    return found


def _with_sides(found: RawGraph, sides: list[NodeTable]) -> RawGraph:
    """Put keyed tables into the order of the graph's own nodes."""
    if any(side.table is not None for side in sides):
        attach(found, sides, _order(found))
    return found


def _order(found: RawGraph) -> Array:
    if found.node_ids is not None:
        return clean_ids(found.node_ids, found.graph_from)
    nodes = highest(found) + 1 if found.num_nodes is None else found.num_nodes
    if found.num_nodes is None and found.x is not None and found.x.ndim == 2:
        nodes = int(found.x.shape[0])
    return np.arange(check_count(nodes, found.graph_from, stored_in(found)))


def _read_npz(path: Path) -> RawGraph:
    """The graph in an .npz file, under the keys that docs/graphs.md lists."""
    archive = Archive(path)
    whole = archive.whole()
    if whole is not None:
        return _from_adjacency(path, whole)
    matrix = archive.csr("adj")
    if matrix is not None:
        found = _from_adjacency(path, matrix)
    elif "edge_index" in archive.keys:
        found = RawGraph(path.stem, *endpoints(archive["edge_index"], path.name))
        if "edge_weight" in archive.keys:
            found.weight = archive["edge_weight"]
        if "num_nodes" in archive.keys:
            found.num_nodes = _num_nodes(archive["num_nodes"], path)
    else:
        raise RawlsError(
            f"{path} has no graph in it: expected the keys adj_data, adj_indices, adj_indptr and "
            "adj_shape, or edge_index, or a file of scipy.sparse.save_npz"
        )
    found.x, found.y, found.masks = archive.features(), archive.first(LABEL_KEYS), archive.masks()
    if found.y is not None:
        found.y, found.class_names = with_class_names(found.y)
    if "node_ids" in archive.keys:
        found.node_ids = archive["node_ids"]
    found.graph_from = found.features_from = found.labels_from = path.name
    return found


def _from_adjacency(path: Path, matrix: Any) -> RawGraph:
    rows, columns = matrix.shape
    if rows != columns:
        raise RawlsError(
            f"{path}: the adjacency matrix has {rows} rows and {columns} columns, "
            "it must be square, a row and a column for each node"
        )
    coo = matrix.tocoo()
    return RawGraph(path.stem, coo.row, coo.col, coo.data, num_nodes=rows, graph_from=path.name)


def _num_nodes(value: Array, path: Path) -> int:
    if value.size != 1 or value.dtype.kind not in "iu":
        raise RawlsError(f"{path}: num_nodes must be one integer")
    return node_count(value.reshape(-1)[0], path.name)
