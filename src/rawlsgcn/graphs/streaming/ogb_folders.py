"""The folders of the Open Graph Benchmark, as its downloads unpack to, straight into shards.

``raw/`` holds ``edge.csv.gz``, ``node-feat.csv.gz``, ``node-label.csv.gz`` and
``num-node-list.csv.gz``; of the largest graphs ``data.npz`` (``edge_index``, ``node_feat``) and
``node-label.npz`` instead. ``split/SCHEME/`` holds the numbers of training, validation and test
nodes. A folder without labels is that of an unlabeled graph. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..catalog import MASKS
from ..raw_graph import RawGraph, node_count
from ..readers.arrays import Archive
from ..readers.table_formats import as_table
from ..readers.tables import TableFile
from ..shards.shard_folder import require_own
from ..shards.shards import Shards
from ..splits import SplitChoice, parse_split
from .edge_batches import ROWS, EdgeBatch, EdgeSource, edge_batch
from .feature_batches import CELLS, FeatureBatch, FeatureSource, batch_in_order
from .file_shards import GraphStreams, write_streams
from .node_numbers import NodeNumbers
from .npz_members import NpzMember

Array = NDArray[Any]
_TEXT, _BINARY = "edge.csv.gz", "data.npz"
_SPLIT_FILES = ("train.csv.gz", "valid.csv.gz", "test.csv.gz")


def ogb_raw_folder(path: Path) -> Path | None:
    """Return the folder of the raw files of an OGB graph; None if this is no such folder."""
    for folder in (path / "raw", path):
        if any((folder / name).is_file() for name in (_TEXT, _BINARY)):
            return folder
    return None


def shard_ogb(
    folder: str | Path,
    count: int,
    graph: Path,
    *,
    split: SplitChoice = None,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> tuple[Shards, Any]:
    """Cut a graph of the Open Graph Benchmark into shards without holding it in memory.

    Args:
        folder: Where to write the shards, as for :func:`..shards.write_shards`.
        count: The number of shards.
        graph: The folder of the graph, such as ``ogbn_arxiv``, or its folder ``raw``.
        split: As for :func:`rawlsgcn.read`; the stored one is that of the benchmark.
        memory: The bytes to use for edges and features, about.
        progress: Called after each batch.

    Returns:
        The shards, and the nodes of the graph (labels, masks and facts, for notes).

    Raises:
        RawlsError: If a file is missing or damaged, or the graph is flawed.
    """
    require_own(folder)
    chosen = parse_split(split)
    raw_folder = ogb_raw_folder(graph.expanduser())
    if raw_folder is None:
        raise RawlsError(
            f"{graph} is a folder without {_TEXT} or {_BINARY}: give a file, or a folder of the "
            "Open Graph Benchmark"
        )
    progress(0, 1, "reading the labels")
    empty = np.empty(0, np.int64)
    home = raw_folder.parent if raw_folder.name == "raw" else raw_folder
    raw = RawGraph(home.resolve().name, empty, empty)
    edges: EdgeSource
    features: FeatureSource
    if (raw_folder / _TEXT).is_file():
        raw.graph_from, raw.features_from = _TEXT, "node-feat.csv.gz"
        nodes = _num_nodes(_column(raw_folder / "num-node-list.csv.gz"), raw_folder)
        labels = raw_folder / "node-label.csv.gz"
        raw.y = _column(labels) if labels.is_file() else None
        edges = _TextEdges(raw_folder / _TEXT, raw_folder / "num-edge-list.csv.gz")
        features = _TextFeatures(raw_folder / raw.features_from, nodes)
    else:
        raw.graph_from = raw.features_from = _BINARY
        archive = Archive(raw_folder / _BINARY)
        if "num_nodes_list" not in archive.keys:
            raise RawlsError(f"{raw_folder / _BINARY} has no num_nodes_list")
        nodes = _num_nodes(archive["num_nodes_list"], raw_folder)
        labels = raw_folder / "node-label.npz"
        raw.y = _stored_labels(labels) if labels.is_file() else None
        edges = _BinaryEdges(raw_folder / _BINARY)
        features = _BinaryFeatures(raw_folder / _BINARY, nodes)
    raw.labels_from = labels.name
    if raw.y is not None and len(raw.y) != nodes:
        raise RawlsError(f"sizes disagree: {labels} has {len(raw.y)} labels for {nodes} nodes")
    if raw.y is not None and raw.y.dtype.kind == "f":  # an unlabeled node has NaN there
        raw.y = np.where(np.isnan(raw.y), -1, raw.y)
    raw.masks = {} if raw.y is None else _masks(home, nodes, raw)
    numbers = NodeNumbers(np.arange(nodes))
    files = sorted(path for path in home.rglob("*") if path.is_file())
    streams = GraphStreams(raw, numbers, labels.name, edges, features, files)
    limit = memory_limit(None) if memory is None else memory
    return write_streams(folder, count, streams, chosen, limit, progress)


def _num_nodes(listed: Array, folder: Path) -> int:
    listed = listed.reshape(-1)
    if len(listed) != 1:
        raise RawlsError(f"{folder} holds {len(listed)} graphs: give a folder of one")
    return node_count(listed[0], folder.name)


def _masks(home: Path, nodes: int, raw: RawGraph) -> dict[str, Array]:
    """The masks of the first scheme of splits that is stored beside the raw files."""
    schemes = sorted(path.parent for path in home.glob(f"split/*/{_SPLIT_FILES[0]}"))
    raw.facts.stored_splits = len(schemes) if len(schemes) > 1 else 0
    masks = {}
    for key, name in zip(MASKS, _SPLIT_FILES, strict=True) if schemes else ():
        path = schemes[0] / name
        chosen = _column(path)
        if chosen.dtype.kind not in "iu" or not ((chosen >= 0) & (chosen < nodes)).all():
            raise RawlsError(f"{path} must hold numbers of nodes, from 0 to {nodes - 1}")
        masks[key] = np.zeros(nodes, bool)
        masks[key][chosen] = True
    return masks


# ---- text ----------------------------------------------------------------------------------------


def _column(path: Path) -> Array:
    """The numbers of a file of one column."""
    with as_table(path):
        frame = pd.read_csv(path, header=None, compression="gzip")
        if frame.shape[1] != 1:
            raise RawlsError(f"{path} has {frame.shape[1]} columns: one is read, not several tasks")
        return TableFile(path, None, 1, frame).numbers([0])[:, 0]


def _tables(path: Path, rows: int, columns: int | None = None) -> Iterator[TableFile]:
    first = 0
    with (
        as_table(path),
        pd.read_csv(
            path, header=None, compression="gzip", chunksize=rows, low_memory=False
        ) as chunks,
    ):
        for frame in chunks:
            if columns is not None and frame.shape[1] != columns:
                raise RawlsError(f"{path} has {frame.shape[1]} columns, not {columns}")
            yield TableFile(path, None, frame.shape[1], frame, first)
            first += len(frame)


class _TextEdges:
    """The arcs of ``edge.csv.gz``."""

    weighted = False

    def __init__(self, path: Path, counted: Path) -> None:
        self.path = path
        self.estimated_rows = int(_column(counted).sum()) if counted.is_file() else 0

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes."""
        with reading(self.path, "edges"):
            yield from ordered_map(
                lambda table: edge_batch(table, (0, 1), None, numbers, named_in),
                _tables(self.path, ROWS, 2),
            )


class _TextFeatures:
    """The rows of ``node-feat.csv.gz``."""

    def __init__(self, path: Path, nodes: int) -> None:
        self._path, self.num_rows = path, nodes
        with as_table(path):
            first = pd.read_csv(path, header=None, compression="gzip", nrows=1)
        self.num_columns = first.shape[1]

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
        """Yield all rows in the order of the nodes."""
        columns = list(range(self.num_columns))
        rows = max(1, CELLS // self.num_columns)

        def batch(table: TableFile) -> FeatureBatch:
            return batch_in_order(self._path, table.first, table.numbers(columns))

        with reading(self._path, "features"):
            tables = _tables(self._path, rows, self.num_columns)
            yield from _counted(ordered_map(batch, tables), self.num_rows, self._path)


# ---- arrays --------------------------------------------------------------------------------------


def _stored_labels(path: Path) -> Array:
    archive = Archive(path)
    y = archive.first(("node_label",))
    if y is None:
        raise RawlsError(f"{path} has no node_label")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise RawlsError(f"{path} has labels of the shape {y.shape}: one is read for each node")
    return y


class _BinaryEdges:
    """``edge_index`` of ``data.npz``: all sources, then all targets."""

    weighted = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._member = NpzMember(path, "edge_index", "iu")
        if self._member.shape[0] != 2:
            raise RawlsError(
                f"{path}: edge_index has the shape {self._member.shape}, not (2, edges)"
            )
        self.estimated_rows = self._member.shape[1]

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes."""
        arcs = self.estimated_rows
        with reading(self.path, "edges"):
            sides = (self._member.blocks(*ends, ROWS) for ends in ((0, arcs), (arcs, 2 * arcs)))
            for number, (source, target) in enumerate(zip(*sides, strict=True)):
                wrong = np.flatnonzero((numbers.find(source) < 0) | (numbers.find(target) < 0))
                if len(wrong):
                    place = int(wrong[0])
                    raise RawlsError(
                        f"{self.path.name}: arc {number * ROWS + place} (counted from 0) is "
                        f"between {source[place]} and {target[place]}, but the nodes are numbered "
                        f"from 0 to {len(numbers) - 1}"
                    )
                yield EdgeBatch(source, target, None)


class _BinaryFeatures:
    """``node_feat`` of ``data.npz``."""

    def __init__(self, path: Path, nodes: int) -> None:
        self._path = path
        self._member = NpzMember(path, "node_feat", "biuf")
        self.num_rows, self.num_columns = self._member.shape
        if self.num_rows != nodes or not self.num_columns:
            raise RawlsError(
                f"{path}: node_feat has the shape {self._member.shape} for {nodes} nodes"
            )

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
        """Yield all rows in the order of the nodes."""
        rows = max(1, CELLS // self.num_columns)
        with reading(self._path, "features"):
            first = 0
            cells = self.num_rows * self.num_columns
            for block in self._member.blocks(0, cells, rows * self.num_columns):
                values = block.reshape(-1, self.num_columns)
                yield batch_in_order(self._path, first, values)
                first += len(values)


def _counted(batches: Iterator[FeatureBatch], nodes: int, path: Path) -> Iterator[FeatureBatch]:
    """Raise an error unless there is a row for each node."""
    rows = 0
    for batch in batches:
        rows += len(batch.nodes)
        if rows > nodes:
            break
        yield batch
    if rows != nodes:
        more = "more rows than" if rows > nodes else f"{rows} rows for"
        raise RawlsError(f"{path} has {more} {nodes} nodes")
