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

from ..._core.errors import RawlsError, reading
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..notes import GraphFacts
from ..raw_graph import RawGraph, check_count
from ..readers.edge_lists import attach
from ..readers.node_tables import NodeTable, read_labels
from ..readers.table_formats import TABLES, is_parquet
from ..shards import Shards, require_count, require_own
from ..splits import MASKS, SplitChoice, choose_split, parse_split
from ..validation import check_labels
from .arc_sorter import ArcSorter
from .build_shards import GraphParts, build_shards
from .edge_batches import EdgeSource, EdgeTable
from .feature_batches import FeatureSource, open_features
from .merged_arcs import SortedArcs
from .node_numbers import NodeNumbers

Array = NDArray[Any]
#: What reading in memory takes at its peak for each byte of a file: of text, .parquet, or arrays.
_TEXT, _PARQUET, _ARRAYS = 12, 40, 3


def memory_in_memory(*paths: Path | None) -> int:
    """Estimate the bytes that reading these files at once takes.

    Args:
        *paths: An edge list, and features and labels where they are files of their own.
    """

    def factor(path: Path) -> int:
        if is_parquet(path):
            return _PARQUET
        return _TEXT if path.suffix.lower() in TABLES else _ARRAYS

    files = [path.expanduser() for path in paths if path is not None]
    return sum(factor(path) * path.stat().st_size for path in files if path.is_file())


def can_stream(graph: Path) -> bool:
    """Whether a graph can be read in batches: an edge list, features and labels beside it."""
    return graph.suffix.lower() in TABLES


def shard_files(
    folder: str | Path,
    count: int,
    graph: Path,
    features: Path,
    labels: Path,
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
        labels: The labels of the nodes.
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
    memory = memory_limit(None) if memory is None else memory
    graph, features, labels = (path.expanduser() for path in (graph, features, labels))
    progress(0, 1, "reading the labels")
    facts = GraphFacts()
    table = read_labels(labels)
    edges = EdgeTable(graph, facts)
    source = open_features(features, facts)
    raw, numbers, named_in = _nodes(graph, table, source, features, facts)
    streams = GraphStreams(raw, numbers, named_in, edges, source, (graph, features, labels))
    return write_streams(folder, count, streams, chosen, memory, progress)


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
    split: SplitChoice,
    memory: int,
    progress: ProgressCallback,
) -> tuple[Shards, Data]:
    """Write a graph that comes in batches as shards; see :func:`shard_files`."""
    raw, numbers = graph.raw, graph.numbers
    require_count(count, len(numbers))
    nodes = _checked_nodes(raw, len(numbers), split)
    marks = np.zeros(len(numbers), np.uint8)
    for number, mask in enumerate(MASKS, start=1):
        marks[nodes[mask].numpy()] = number
    parts = GraphParts(
        raw.name,
        nodes.y.numpy(),
        marks,
        graph.features.num_columns,
        lambda work: _sorted_arcs(graph, work, memory, progress),
        lambda: graph.features.batches(numbers, graph.named_in),
        raw.facts,
        None if numbers.is_range else numbers.order,
        raw.class_names,
    )
    # Nobody knows whether a store is still the same: then a killed run begins again.
    content = [_identity(path) for path in graph.files] or secrets.token_hex()
    key = {"name": raw.name, "split": str(split), "content": content}
    shards = build_shards(folder, count, parts, key, progress)
    nodes.facts = raw.facts.pairs()
    return shards, nodes


def _identity(path: Path) -> list[Any]:
    """What is another one for a file with another content."""
    about = path.stat()
    return [str(path.resolve()), about.st_size, about.st_mtime_ns]


def _nodes(
    graph: Path, table: NodeTable, source: FeatureSource, features: Path, facts: GraphFacts
) -> tuple[RawGraph, NodeNumbers, str]:
    """The labels in the order of the nodes, that order, and the file that it is from.

    The order is chosen as by :func:`..readers.edge_lists.read_edge_list`.
    """
    empty = np.empty(0, np.int64)
    raw = RawGraph(graph.stem, empty, empty, facts=facts, graph_from=graph.name)
    as_text = table.table is not None and table.table.has_text_ids(table.key)
    order: Array
    if table.table is None:
        order, named_in = np.arange(table.values.shape[0]), table.path.name
    elif source.num_rows is not None and not as_text:
        order, named_in = np.arange(source.num_rows), features.name
    else:
        order, named_in = table.ids(as_text), table.path.name
    if source.num_rows not in (None, len(order)):
        raise RawlsError(
            f"sizes disagree: {features.name} has {source.num_rows} rows of features, but "
            f"{table.path.name} has {len(order)} labels"
        )
    if table.table is not None and named_in != table.path.name:
        with reading(table.path, "labels"):
            attach(raw, [table], order)
    raw.y, raw.labels_from, raw.masks = table.values, table.path.name, table.masks
    raw.class_names = table.class_names
    facts.word_labels = raw.class_names is not None
    table.add_facts(facts)
    numbers = NodeNumbers(order)
    if not numbers.is_range:
        raw.node_ids = order
    return raw, numbers, named_in


def _checked_nodes(raw: RawGraph, count: int, split: SplitChoice) -> Data:
    """The labels and masks, validated as those of a graph in memory."""
    assert raw.y is not None
    check_count(count, raw.labels_from)
    nodes = Data(num_nodes=count, name=raw.name)
    nodes.y = check_labels(raw, count)
    choose_split(nodes, raw, parse_split(split))
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
        arcs = sorter.finish(progress)
    if not arcs.num_arcs:
        raise RawlsError(
            f"{edges.path.name} has no edges but self-loops or edges of weight zero: nothing to "
            "learn from"
        )
    return arcs
