"""The user's own graphs, whatever file they come in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading, require_file
from ..._core.threads import fork_safe_threads
from ..graph_objects import PARTS, raw_from_object, raw_from_parts
from ..raw_graph import RawGraph, feature_matrix
from ..splits import SplitChoice, parse_split
from ..validation import validate
from .arrays import graph_parts
from .edge_lists import read_edge_list
from .features import read_features, use_one_file_for_both
from .labels import label_array, read_labels, use_labels
from .node_link import from_networkx, is_networkx, read_node_link
from .node_numbers import NodeNumbers
from .node_order import attach_all
from .node_tables import TORCH, NodeTable
from .table_formats import TABLES
from .torch_files import read_saved

FORMATS = (*TABLES, ".json", ".npz", ".pt")


@fork_safe_threads()
def read(
    path: Any,
    *,
    features: Any = None,
    labels: Any = None,
    split: SplitChoice = None,
    sparse: bool = False,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Read a graph from a file or from an object; docs/graphs.md describes the formats.

    Args:
        path: An .npz file, an edge list (.csv, .tsv, .txt, .parquet), JSON of networkx's
            ``node_link_data``, or a saved ``Data`` (.pt); or a networkx graph, a scipy sparse
            adjacency matrix or a ``Data``.
        features: A file of features (.csv, .tsv, .txt, .parquet with node ids; .npy, .npz or .pt
            in the order of the nodes), a matrix in that order, or the names of node attributes;
            used instead of those in ``path``.
        labels: A file of labels in the same formats, a list or array in the order of the nodes, or
            the name of a node attribute; used instead of those in ``path``.
        split: 'stored', 'paper', 'random', or the shares of training, validation and test nodes,
            as '0.6,0.2,0.2' or (0.6, 0.2, 0.2); by default the stored masks if there are any, else
            the paper's split if the graph is large enough for it, else '0.5,0.25,0.25'.
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
    chosen = parse_split(split)
    beside = [Path(each).name for each in (features, labels) if isinstance(each, str | Path)]
    from_file = isinstance(path, str | Path)
    with reading(path, "a graph", beside) if from_file else contextlib.nullcontext():
        return validate(
            read_raw_graph(path, features=features, labels=labels),
            split=chosen,
            sparse=sparse,
            need_features=need_features,
            need_labels=need_labels,
        )


def read_raw_graph(path: Any, *, features: Any = None, labels: Any = None) -> RawGraph:
    """What the files or objects hold, before any check: the edges still have their directions."""
    suffix, raw, label, names = "", None, None, None
    if isinstance(path, str | Path):
        path = Path(path).expanduser()
        require_file(path)
        suffix = path.suffix.lower()
    if suffix == ".json" or is_networkx(path):
        attributed = from_networkx(path) if is_networkx(path) else read_node_link(path)
        label, names = _attribute_names(features, labels)
        if isinstance(labels, Mapping):
            labels = [labels.get(each) for each in attributed.ids]
        raw = attributed.raw(label, names)
    elif suffix == ".npz":
        raw = raw_from_parts(graph_parts(path), path.name, path.stem)
    elif suffix in TORCH:
        raw = raw_from_parts(read_saved(path, PARTS), path.name, path.stem)
    elif not isinstance(path, Path):
        raw = raw_from_object(path)
    elif suffix not in TABLES:
        raise RawlsError(f"{path}: graphs are read from {', '.join(FORMATS)} files")
    label_table = None if label else _node_table(labels, "labels")
    feature_table = None if names else _node_table(features, "features")
    tables = [each for each in (label_table, feature_table) if each is not None]
    if raw is None:
        raw = read_edge_list(path, tables)
    elif any(each.table is not None for each in tables):
        attach_all(raw, tables, NodeNumbers(_order(raw)))
    # Labels and features of further files are used instead of the graph's own.
    if label_table is not None:
        use_labels(raw, label_table)
    if feature_table is not None:
        raw.x, raw.features_from = feature_table.values, feature_table.path.name
        raw.facts.structural_features = False
    if label_table and feature_table:
        use_one_file_for_both(label_table, feature_table)
    for each in tables:
        each.add_facts(raw.facts)
    return raw


def _attribute_names(features: Any, labels: Any) -> tuple[str | None, list[str] | None]:
    """The attributes of the nodes with the labels and the features, if these are their names."""
    label = str(labels) if isinstance(labels, str | Path) and not _is_file(labels) else None
    names = None
    if isinstance(features, str | Path) and not _is_file(features):
        names = [name.strip() for name in str(features).split(",")]
    elif isinstance(features, list | tuple) and all(isinstance(each, str) for each in features):
        names = list(features)
    return label, names


def _node_table(given: Any, what: str) -> NodeTable | None:
    """Labels or features of a file, or as any kind of array or matrix in the order of the nodes."""
    if given is None:
        return None
    if isinstance(given, str | Path):
        require_file(given)
        read_table = read_labels if what == "labels" else read_features
        return read_table(Path(given).expanduser())
    if what == "features":
        return NodeTable(Path(what), feature_matrix(given, what))
    y = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    values, names = label_array(y, what)
    return NodeTable(Path(what), values, class_names=names)


def _is_file(path: str | Path) -> bool:
    return os.path.isfile(Path(path).expanduser())


def _order(raw: RawGraph) -> NDArray[Any]:
    """The ids of the nodes of a graph, which a table may name in another order."""
    if raw.node_ids is not None:
        return raw.node_ids
    nodes = raw.highest_node() + 1 if raw.num_nodes is None else raw.num_nodes
    if raw.num_nodes is None and raw.x is not None and raw.x.ndim == 2:
        nodes = int(raw.x.shape[0])
    return np.arange(raw.checked_count(nodes))
