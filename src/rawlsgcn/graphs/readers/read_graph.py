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
    highest_node,
    node_count,
    num_stored,
    raw_from_data,
)
from ..splits import SplitChoice, parse_split
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
    split: SplitChoice = None,
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
        split: 'stored', 'paper', 'random', or the shares of training, validation and test nodes,
            as '0.6,0.2,0.2' or (0.6, 0.2, 0.2); by default the stored masks if there are any, else
            the paper's split if the graph is large enough for it, else a random one.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero, instead of
            dense.
        need_features: Raise an error if features are flawed; a graph that has none gets features
            made of its structure. Balancing needs none.
        need_labels: Raise an error if labels or edges are missing or flawed; prediction needs
            none.

    Returns:
        A validated graph, its nodes in the order that docs/graphs.md describes.

    Raises:
        RawlsError: If a file is missing, damaged or in another format, or the graph is flawed.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import rawlsgcn as rg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "friends.csv")
        ...     _ = path.write_text("source,target\\nanna,ben\\nben,carla\\n")
        ...     graph = rg.read(path, need_features=False, need_labels=False)
        >>> graph.node_ids
        ['anna', 'ben', 'carla']
    """
    split = parse_split(split)
    beside = [Path(each).name for each in (features, labels) if each is not None]
    with reading(path, "a graph", beside):
        raw = read_raw_graph(path, features=features, labels=labels)
        return validate(
            raw,
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
    label_table = None if labels is None else read_labels(Path(labels).expanduser())
    feature_table = None if features is None else read_features(Path(features).expanduser())
    tables = [each for each in (label_table, feature_table) if each is not None]

    suffix = path.suffix.lower()
    if suffix in TABLES:
        raw = read_edge_list(path, tables)
    elif suffix == ".npz":
        raw = _with_tables(_read_npz(path), tables)
    elif suffix in (".pt", ".pth"):
        raw = _with_tables(raw_from_data(read_saved(path), path.name), tables)
    else:
        raise RawlsError(f"{path}: graphs are read from {', '.join(FORMATS)} files")
    if label_table is not None:
        raw.y, raw.labels_from = label_table.values, label_table.path.name
        raw.class_names = label_table.class_names
        # Masks beside new labels are the user's; those stored with the old ones still hold.
        raw.masks = label_table.masks or raw.masks
    if feature_table is not None:
        raw.x, raw.features_from = feature_table.values, feature_table.path.name
    for each in tables:
        each.add_facts(raw.facts)
    raw.facts.word_labels |= suffix not in (".pt", ".pth") and raw.class_names is not None
    return raw


def _with_tables(raw: RawGraph, tables: list[NodeTable]) -> RawGraph:
    """Put keyed tables into the order of the graph's own nodes."""
    if any(each.table is not None for each in tables):
        attach(raw, tables, _order(raw))
    return raw


def _order(raw: RawGraph) -> Array:
    if raw.node_ids is not None:
        return clean_ids(raw.node_ids, raw.graph_from)
    nodes = highest_node(raw) + 1 if raw.num_nodes is None else raw.num_nodes
    if raw.num_nodes is None and raw.x is not None and raw.x.ndim == 2:
        nodes = int(raw.x.shape[0])
    return np.arange(check_count(nodes, raw.graph_from, num_stored(raw)))


def _read_npz(path: Path) -> RawGraph:
    """The graph in an .npz file, under the keys that docs/graphs.md lists."""
    archive = Archive(path)
    whole = archive.whole()
    if whole is not None:
        return _from_adjacency(path, whole)
    matrix = archive.csr("adj")
    if matrix is not None:
        raw = _from_adjacency(path, matrix)
    elif "edge_index" in archive.keys:
        raw = RawGraph(path.stem, *endpoints(archive["edge_index"], path.name))
        if "edge_weight" in archive.keys:
            raw.weight = archive["edge_weight"]
        if "num_nodes" in archive.keys:
            raw.num_nodes = _num_nodes(archive["num_nodes"], path)
    else:
        raise RawlsError(
            f"{path} has no graph in it: expected the keys adj_data, adj_indices, adj_indptr and "
            "adj_shape, or edge_index, or a file of scipy.sparse.save_npz"
        )
    raw.x, raw.y, raw.masks = archive.features(), archive.first(LABEL_KEYS), archive.masks()
    if raw.y is not None:
        raw.y, raw.class_names = with_class_names(raw.y)
    if "node_ids" in archive.keys:
        raw.node_ids = archive["node_ids"]
    raw.graph_from = raw.features_from = raw.labels_from = path.name
    return raw


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
