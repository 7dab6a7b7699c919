"""Files of any size into shards: an edge list, labels and features, read in batches.

Labels and node ids are kept in memory, a few numbers for each node; edges and features pass through
in batches. The shards are those of the graph that :func:`rawlsgcn.read` returns for these files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from ..._core.errors import reading, require_file
from ..._core.progress import ProgressCallback, no_progress
from ..raw_graph import RawGraph
from ..readers.column_names import edges_have_header
from ..readers.edge_lists import EdgeTable
from ..readers.features import feature_batches, open_features, use_one_file_for_both
from ..readers.labels import read_labels, use_labels
from ..readers.node_numbers import NodeNumbers, TextIdsError
from ..readers.node_order import file_of_nodes, number_nodes
from ..readers.node_tables import NodeTable
from ..readers.table_formats import TABLES, is_parquet
from ..readers.tables import read_header
from ..shards.shards import Shards, require_own
from ..splits import SplitChoice, parse_split
from ..validation import require_same_sizes
from .build_shards import NO_ARCS, GraphStream, build_shards

#: What reading in memory takes at its peak for each byte of a file: of text, .parquet, or arrays.
_TEXT, _PARQUET, _ARRAYS = 12, 40, 3


def memory_in_memory(*paths: Path | None) -> int:
    """Estimate the bytes that reading an edge list, features and labels at once takes."""

    def factor(path: Path) -> int:
        if is_parquet(path):
            return _PARQUET
        return _TEXT if path.suffix.lower() in TABLES else _ARRAYS

    files = [path.expanduser() for path in paths if path is not None]
    return sum(factor(path) * path.stat().st_size for path in files if path.is_file())


def shard_files(
    folder: str | Path,
    count: int,
    graph: Path,
    features: Path,
    labels: Path | None = None,
    *,
    split: SplitChoice = None,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[Shards, Data]:
    """Cut a graph in files into shards without holding it in memory.

    Args:
        folder: Where to write the shards, as for :func:`..shards.write_shards`.
        count: The number of shards.
        graph: An edge list in a .csv, .tsv, .txt or .parquet file.
        features: The features of the nodes; .npz and .pt files are read whole.
        labels: The labels of the nodes; without them the shards serve for predictions alone.
        split: As for :func:`rawlsgcn.read`.
        memory: The bytes to use for edges and features, about.
        progress: Called after each batch.

    Returns:
        The shards, and the nodes of the graph (labels, masks and facts, for notes).

    Raises:
        RawlsError: If a file is damaged, which names the row, or the graph is flawed.
    """
    require_own(folder)
    chosen = parse_split(split)
    files = [path.expanduser() for path in (graph, features, labels) if path is not None]
    for path in files:
        require_file(path)
    progress(0, 1, "reading the labels")
    try:
        stream = _open(*files, as_text=False, progress=progress)
        return build_shards(folder, count, stream, chosen, memory, progress)
    except TextIdsError:
        pass  # One word among numbers makes texts of all ids.
    stream = _open(*files, as_text=True, progress=progress)
    return build_shards(folder, count, stream, chosen, memory, progress)


def _open(
    graph: Path,
    features: Path,
    labels: Path | None = None,
    *,
    as_text: bool,
    progress: ProgressCallback,
) -> GraphStream:
    """Open the files, and number the nodes as :func:`..readers.edge_lists.read_edge_list` does."""
    raw = RawGraph(graph.stem, NO_ARCS, NO_ARCS, graph_from=graph.name)
    y = None if labels is None else read_labels(labels)
    as_text |= y is not None and y.has_text_ids
    x = open_features(features, as_text, progress)
    tables = [x] if y is None else [y, x]
    if y is not None:
        use_one_file_for_both(y, x)
    with reading(graph, "a graph"):
        header = read_header(graph, edges_have_header, whole=as_text)
        header.require_rows()
        edges = EdgeTable(header, raw.facts, tables, progress)
    numbers = number_nodes(tables, as_text, graph.name, edges.ids)
    if y is not None:
        y.attach(raw, numbers, [graph.name, features.name])
        use_labels(raw, y)
    for each in tables:
        each.add_facts(raw.facts)
    files = [path for path in (graph, features, labels) if path is not None]
    named_in = known_from = file_of_nodes(tables, as_text)
    if not numbers.is_range:
        raw.node_ids = numbers.order
        known_from = graph.name if y is None else f"{graph.name} or {y.path.name}"
    _require_sizes(raw, x, numbers, edges, named_in)
    return GraphStream(
        raw,
        len(numbers),
        x.num_columns,
        lambda: edges.batches(numbers, named_in),
        lambda: feature_batches(x, numbers, known_from),
        {"files": identities(files), "text": numbers.is_text},
        weighted=edges.weighted,
        num_arcs=edges.estimated_rows,
    )


def identities(files: Iterable[Path]) -> list[list[Any]]:
    """What is another one for files with another content."""
    found = ((path.resolve(), path.stat()) for path in files)
    return [[str(path), about.st_size, about.st_mtime_ns] for path, about in found]


def _require_sizes(
    raw: RawGraph, x: NodeTable, numbers: NodeNumbers, edges: EdgeTable, named_in: str
) -> None:
    """Refuse labels or features in the order of the nodes that are not as many as the nodes."""
    count = len(numbers)
    rows = count if x.table is not None else x.num_rows
    sizes = {f"{x.path.name} has {{}} rows of features": rows}
    if raw.y is not None:
        sizes[f"{raw.labels_from} has {{}} labels"] = len(raw.y)
    if raw.node_ids is not None:
        sizes = {f"{raw.graph_from} has {{}} node ids": count, **sizes}
    if len(set(sizes.values())) > 1 and numbers.is_text:
        for _ in edges.batches(numbers, named_in):
            pass  # An edge of a node that is not listed says more than the sizes.
    require_same_sizes(sizes)
