"""The folders of the Open Graph Benchmark, as its downloads unpack to, straight into shards.

``raw/`` holds ``edge.csv.gz``, ``node-feat.csv.gz``, ``node-label.csv.gz`` and
``num-node-list.csv.gz``; of the largest graphs ``data.npz`` (``edge_index``, ``node_feat``) and
``node-label.npz`` instead. ``split/SCHEME/`` holds the numbers of training, validation and test
nodes. A folder without labels is that of an unlabeled graph. Nothing is unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..catalog import MASKS
from ..raw_graph import RawGraph, node_count
from ..readers.arrays import Archive, checked_array, open_zip, read_header
from ..readers.edge_lists import EdgeBatch, EdgeTable, array_batches
from ..readers.features import ordered_batches
from ..readers.node_numbers import NodeNumbers
from ..readers.node_tables import ROWS
from ..readers.table_formats import as_table
from ..readers.tables import TableFile, TableHeader
from ..shards.shards import Shards, require_own
from ..splits import SplitChoice, parse_split
from .build_shards import NO_ARCS, GraphStream, build_shards
from .file_shards import identities

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
    home = raw_folder.parent if raw_folder.name == "raw" else raw_folder
    open_raw = _open_text if (raw_folder / _TEXT).is_file() else _open_binary
    raw = RawGraph(home.resolve().name, NO_ARCS, NO_ARCS)
    files = sorted(path for path in home.rglob("*") if path.is_file())
    stream = open_raw(raw, raw_folder, {"files": identities(files)})
    nodes = stream.num_nodes
    if raw.y is not None:
        if len(raw.y) != nodes:
            labels = raw_folder / raw.labels_from
            raise RawlsError(f"sizes disagree: {labels} has {len(raw.y)} labels for {nodes} nodes")
        if raw.y.dtype.kind == "f":  # an unlabeled node has NaN there
            raw.y = np.where(np.isnan(raw.y), -1, raw.y)
        raw.masks = _masks(home, nodes, raw)
    return build_shards(folder, count, stream, chosen, memory, progress)


def _num_nodes(listed: Array, folder: Path) -> int:
    listed = listed.reshape(-1)
    if len(listed) != 1:
        raise RawlsError(f"{folder} holds {len(listed)} graphs: give a folder of one")
    if listed.dtype.kind not in "iu":
        raise RawlsError(f"{folder}: the number of nodes must be an integer, not {listed.dtype}")
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


def _open_text(raw: RawGraph, folder: Path, key: dict[str, Any]) -> GraphStream:
    edges, x, labels = (folder / f"{name}.csv.gz" for name in ("edge", "node-feat", "node-label"))
    raw.graph_from, raw.features_from, raw.labels_from = edges.name, x.name, labels.name
    nodes = _num_nodes(_column(folder / "num-node-list.csv.gz"), folder)
    raw.y = _column(labels) if labels.is_file() else None
    if _width(edges) != 2:
        raise RawlsError(f"{edges} has {_width(edges)} columns, not 2")
    arcs = EdgeTable(TableHeader(edges, None, 2), raw.facts)
    counted, width = folder / "num-edge-list.csv.gz", _width(x)
    rows, columns = TableHeader(x, None, width), list(range(width))
    return GraphStream(
        raw,
        nodes,
        width,
        lambda: arcs.batches(NodeNumbers(np.arange(nodes)), labels.name),
        lambda: ordered_batches(x, (nodes, width), rows.tables, lambda t: t.numbers(columns)),
        key,
        num_arcs=int(_column(counted).sum()) if counted.is_file() else 0,
    )


def _width(path: Path) -> int:
    with as_table(path):
        return int(pd.read_csv(path, header=None, compression="gzip", nrows=1).shape[1])


def _column(path: Path) -> Array:
    """The numbers of a file of one column."""
    with as_table(path):
        frame = pd.read_csv(path, header=None, compression="gzip")
        if frame.shape[1] != 1:
            raise RawlsError(f"{path} has {frame.shape[1]} columns: one is read, not several tasks")
        return TableFile(path, None, 1, frame).numbers([0])[:, 0]


# ---- arrays --------------------------------------------------------------------------------------


def _open_binary(raw: RawGraph, folder: Path, key: dict[str, Any]) -> GraphStream:
    path, labels = folder / _BINARY, folder / "node-label.npz"
    raw.graph_from, raw.features_from, raw.labels_from = path.name, path.name, labels.name
    archive = Archive(path)
    if "num_nodes_list" not in archive.keys:
        raise RawlsError(f"{path} has no num_nodes_list")
    nodes = _num_nodes(archive["num_nodes_list"], folder)
    raw.y = _stored_labels(labels) if labels.is_file() else None
    edges, x = NpzMember(path, "edge_index", "iu"), NpzMember(path, "node_feat", "biuf")
    sides, arcs = edges.shape
    if sides != 2:
        raise RawlsError(f"{path}: edge_index has the shape {edges.shape}, not (2, edges)")
    rows, columns = x.shape
    if rows != nodes or not columns:
        raise RawlsError(f"{path}: node_feat has the shape {x.shape} for {nodes} nodes")

    def edge_batches() -> Iterator[EdgeBatch]:
        ends = (edges.blocks(0, arcs, ROWS), edges.blocks(arcs, 2 * arcs, ROWS))
        with reading(path, "edges"):
            yield from array_batches(path.name, nodes, zip(*ends, strict=True))

    return GraphStream(
        raw,
        nodes,
        columns,
        edge_batches,
        lambda: ordered_batches(
            path,
            x.shape,
            lambda size: x.blocks(0, rows * columns, size * columns),
            lambda block: block.reshape(-1, columns),
        ),
        key,
        num_arcs=arcs,
    )


def _stored_labels(path: Path) -> Array:
    y = Archive(path).first(("node_label",))
    if y is None:
        raise RawlsError(f"{path} has no node_label")
    if y.size != len(np.atleast_1d(y)):
        raise RawlsError(f"{path} has labels of the shape {y.shape}: one is read for each node")
    return y.reshape(-1)


class NpzMember:
    """An array of two dimensions in an .npz file, compressed or not, read in blocks.

    Args:
        path: The file.
        key: The name of the array.
        kinds: The kinds of numbers that it may hold, as in ``numpy.dtype.kind``.

    Attributes:
        shape: Its rows and columns.
    """

    def __init__(self, path: Path, key: str, kinds: str) -> None:
        self._path, self._key = path, key
        with reading(path, "numpy arrays"), self._open() as (file, size):
            self.shape, self._kind = read_header(file, size)
            length = math.prod(self.shape) * self._kind.itemsize
            if len(self.shape) != 2 or self._kind.kind not in kinds:
                raise RawlsError(
                    f"{path}: {key} is an array of {self._kind} of the shape {self.shape}"
                )
            if length != size - file.tell():
                raise RawlsError(f"{path} is damaged: {key} does not have its length")
            file.seek(0)
            np.lib.format.read_magic(file)
            if np.lib.format.read_array_header_1_0(file)[1]:
                raise RawlsError(f"{path}: {key} is stored by columns: save it by rows")

    @contextmanager
    def _open(self) -> Iterator[tuple[IO[bytes], int]]:
        name = f"{self._key}.npy"
        with open_zip(self._path) as archive:
            if name not in archive.namelist():
                raise RawlsError(f"{self._path} has no {self._key}")
            with archive.open(name) as file:
                yield file, archive.getinfo(name).file_size

    def blocks(self, first: int, last: int, length: int) -> Iterator[Array]:
        """Entries ``first`` to ``last`` of the flat array, so many at a time."""
        with self._open() as (file, size):
            read_header(file, size)
            file.seek(first * self._kind.itemsize, 1)
            for begin in range(first, last, length):
                count = min(length, last - begin)
                content = file.read(count * self._kind.itemsize)
                if len(content) != count * self._kind.itemsize:
                    raise EOFError("the array is longer than the file")
                yield checked_array(np.frombuffer(content, self._kind))
