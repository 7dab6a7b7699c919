"""Files of any size into shards: an edge list, labels and features, read in batches.

Labels and node ids are kept in memory, a few numbers for each node; edges and features pass through
in batches. The shards are those of the graph that :func:`rawlsgcn.read` returns for these files.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from ..._core.errors import RawlsError, reading, require_file
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..notes import GraphFacts
from ..raw_graph import RawGraph, check_count
from ..readers.edge_lists import attach_table
from ..readers.node_numbers import (
    NodeNumbers,
    TextIdsError,
    file_of_nodes,
    is_range,
    node_order,
)
from ..readers.node_tables import NodeTable, read_labels, use_one_file_for_both
from ..readers.table_formats import TABLES, is_parquet
from ..shards.shard_writer import require_count
from ..shards.shards import Shards, require_own
from ..split_choice import choose_split
from ..splits import MASKS, Ratios, SplitChoice, parse_split
from ..validation import check_labels, require_same_sizes, settle_labels
from .arc_sorter import ArcSorter, SortedArcs
from .build_shards import GraphParts, build_shards
from .edge_batches import EdgeSource, EdgeTable
from .feature_batches import FeatureSource, FeatureTable, open_features

Array = NDArray[Any]


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
    graph, features = graph.expanduser(), features.expanduser()
    labels = None if labels is None else labels.expanduser()
    for path in (graph, labels, features):
        if path is not None:
            require_file(path)
    progress(0, 1, "reading the labels")
    try:
        streams = _streams(graph, features, labels, False, progress)
        return write_streams(folder, count, streams, chosen, memory, progress)
    except TextIdsError:
        pass  # One word among numbers makes texts of all ids.
    streams = _streams(graph, features, labels, True, progress)
    return write_streams(folder, count, streams, chosen, memory, progress)


def _streams(
    graph: Path, features: Path, labels: Path | None, as_text: bool, progress: ProgressCallback
) -> GraphStreams:
    """Open the files, and number the nodes as :func:`..readers.edge_lists.read_edge_list` does."""
    facts = GraphFacts()
    table = None if labels is None else read_labels(labels)
    if table is not None and table.table is not None:
        as_text |= table.table.has_text_ids(table.key)
    source = open_features(features, as_text, progress)
    columns = source.columns if isinstance(source, FeatureTable) else []
    one = table is not None and use_one_file_for_both(table, features, columns)
    rows = [source.rows] if table is None else [table.rows, source.rows]
    edges = EdgeTable(graph, facts, rows, as_text, progress)
    order = node_order(rows, as_text, graph.name, edges.text_ids)
    raw = _raw_nodes(graph, table, features, order, facts)
    if isinstance(source, FeatureTable):
        source.add_facts(facts, all_used=one)
    named_in = file_of_nodes(rows, as_text)
    files = [path for path in (graph, features, labels) if path is not None]
    streams = GraphStreams(raw, NodeNumbers(order), named_in, edges, source, files)
    _require_sizes(streams, features.name)
    return streams


@dataclass(frozen=True, eq=False)
class GraphStreams:
    """A graph whose labels are in memory, and whose edges and features come in batches.

    Attributes:
        raw: The name, the labels, the masks and the facts.
        numbers: The nodes.
        named_in: The file that lists them, for error messages.
        edges: The arcs.
        features: The rows of features.
        files: All files that the graph is read from; none if it is not from files.
    """

    raw: RawGraph
    numbers: NodeNumbers
    named_in: str
    edges: EdgeSource
    features: FeatureSource
    files: Sequence[Path]


def write_streams(
    folder: str | Path,
    count: int,
    graph: GraphStreams,
    split: str | Ratios | None,
    memory: int | None,
    progress: ProgressCallback,
) -> tuple[Shards, Data]:
    """Write a graph that comes in batches as shards; see :func:`shard_files`."""
    raw, numbers, named_in = graph.raw, graph.numbers, graph.named_in
    limit = memory_limit(None) if memory is None else memory
    if not numbers.is_range:
        listed = [raw.graph_from] if raw.y is None else [raw.graph_from, raw.labels_from]
        named_in = " or ".join(listed)
    labeled = settle_labels(raw, split)
    require_count(count, len(numbers))
    nodes = _checked_nodes(raw, len(numbers), split)
    marks = np.zeros(len(numbers), np.uint8)
    for number, mask in enumerate(MASKS if labeled else (), start=1):
        marks[nodes[mask].numpy()] = number
    parts = GraphParts(
        raw.name,
        len(numbers),
        nodes.y.numpy() if labeled else None,
        marks,
        graph.features.num_columns,
        lambda work: _sorted_arcs(graph, work, limit, progress),
        lambda: graph.features.batches(numbers, named_in),
        raw.facts,
        None if numbers.is_range else numbers.order,
        raw.class_names,
    )
    # Nobody knows whether a store is still the same: then a killed run begins again.
    content = [_identity(path) for path in graph.files] or secrets.token_hex()
    key = {"name": raw.name, "split": str(split), "content": content, "text": numbers.is_text}
    shards = build_shards(folder, count, parts, key, progress)
    nodes.facts = raw.facts.pairs()
    return shards, nodes


def _identity(path: Path) -> list[Any]:
    """What is another one for a file with another content."""
    about = path.stat()
    return [str(path.resolve()), about.st_size, about.st_mtime_ns]


def _raw_nodes(
    graph: Path, table: NodeTable | None, features: Path, order: Array, facts: GraphFacts
) -> RawGraph:
    """The labels and masks, if there are any, in the order of the nodes."""
    empty = np.empty(0, np.int64)
    raw = RawGraph(graph.stem, empty, empty, facts=facts, graph_from=graph.name)
    if table is not None:
        with reading(table.path, "labels"):
            attach_table(raw, table, NodeNumbers(order), [graph.name, features.name])
        raw.y, raw.labels_from, raw.masks = table.values, table.path.name, table.masks
        raw.label_place = table.place
        raw.class_names = table.class_names
        facts.word_labels = raw.class_names is not None
        table.add_facts(facts)
    if not is_range(order):
        raw.node_ids = order
    return raw


def _require_sizes(graph: GraphStreams, features: str) -> None:
    """Refuse labels or features in the order of the nodes that are not as many as the nodes."""
    raw, count = graph.raw, len(graph.numbers)
    rows = count if graph.features.num_rows is None else graph.features.num_rows
    sizes = {f"{features} has {{}} rows of features": rows}
    if raw.y is not None:
        sizes[f"{raw.labels_from} has {{}} labels"] = len(raw.y)
    if raw.node_ids is not None:
        sizes = {f"{raw.graph_from} has {{}} node ids": count, **sizes}
    if len(set(sizes.values())) > 1 and graph.numbers.is_text:
        for _ in graph.edges.batches(graph.numbers, graph.named_in):
            pass  # An edge of a node that is not listed says more than the sizes.
    require_same_sizes(sizes)


def _checked_nodes(raw: RawGraph, count: int, split: str | Ratios | None) -> Data:
    """The labels and masks, if there are any, validated as those of a graph in memory."""
    check_count(count, raw.graph_from if raw.y is None else raw.labels_from)
    nodes = Data(num_nodes=count, name=raw.name)
    if raw.y is not None:
        nodes.y = check_labels(raw, count)
        choose_split(nodes, raw, split)
    if raw.class_names is not None:
        nodes.class_names = raw.class_names
    return nodes


def _sorted_arcs(
    graph: GraphStreams, work: Path, memory: int, progress: ProgressCallback
) -> SortedArcs:
    edges, numbers = graph.edges, graph.numbers
    with ArcSorter(
        len(numbers), weighted=edges.weighted, folder=work, memory=memory, facts=graph.raw.facts
    ) as sorter:
        rows = 0
        for batch in edges.batches(numbers, graph.named_in):
            sorter.add(*batch)
            rows += len(batch.source)
            progress(rows, max(rows, edges.estimated_rows), f"reading {edges.path.name}")
        if not rows:
            raise RawlsError(f"{edges.path.name} has no edges")
        try:
            arcs = sorter.finish(progress)
        except RawlsError as error:
            raise RawlsError(f"{edges.path.name}: {error}") from error
    if not arcs.num_arcs and graph.raw.y is not None:
        raise RawlsError(
            f"{edges.path.name} has no edges but self-loops or edges of weight zero: nothing to "
            "learn from"
        )
    return arcs
