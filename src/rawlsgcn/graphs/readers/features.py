"""Features of files, whole or in batches of rows: tables by node id, arrays in node order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..node_features import FILL_IN, compact, dense_rows, feature_flaw, require_matrix
from .arrays import checked_array
from .arrays import read_header as read_npy_header
from .column_names import NO_FEATURES, features_have_header
from .node_numbers import NodeNumbers, no_row
from .node_tables import (
    NodeTable,
    ids_of,
    node_columns,
    read_array,
    refuse_repeated,
    refuse_unknown,
)
from .table_formats import TABLES, separator_name
from .tables import TableFile, TableHeader, read_header, read_table

Array = NDArray[Any]
#: Numbers that are read at a time.
CELLS = 1 << 22


class FeatureBatch(NamedTuple):
    """Rows of features and the numbers of their nodes."""

    nodes: Array
    values: NDArray[np.float32]


def read_features(path: Path) -> NodeTable:
    """Features from .csv, .tsv, .parquet (id first), .npy, .pt, or .npz (dense or sparse)."""
    with reading(path, "features"):
        if path.suffix.lower() not in TABLES:
            return NodeTable(path, read_array(path, "features")[0])
        table = read_table(path, features_have_header)
        nodes = _feature_table(table)
        nodes.values = _numbers(table, nodes.columns)
        return nodes


def open_features(
    path: Path, as_text: bool = False, progress: ProgressCallback = no_progress
) -> NodeTable:
    """Open a file for :func:`feature_batches`; .npz and .pt files are held in memory as they are.

    If ids are texts (``as_text``), the first line of a table may be a node.
    """
    suffix = path.suffix.lower()
    with reading(path, "features"):
        if suffix in TABLES:
            header = read_header(path, features_have_header, whole=as_text)
            header.require_rows()
            nodes = _feature_table(header)
            nodes.progress = progress
            return nodes
        values = _mapped(path) if suffix == ".npy" else read_array(path, "features")[0]
        require_matrix(path.name, values.shape)
        return NodeTable(path, values if suffix == ".npy" else compact(values))


def _feature_table(table: TableHeader) -> NodeTable:
    key, columns = node_columns(table)
    others = [index for index in columns if table.names and table.words[index] in NO_FEATURES]
    columns = [index for index in columns if index not in others]
    if others and not columns:
        raise RawlsError(
            f"{table.path} has no features: beside the node ids it has {table.column(others[0])}, "
            "which is not one"
        )
    if not columns:
        raise RawlsError(
            f"{table.path} has one column: give the node id first and the features after it, "
            f"separated by {separator_name(table.path)}"
        )
    ignored = [table.column(index) for index, word in enumerate(table.words) if word in NO_FEATURES]
    return NodeTable(table.path, None, table=table, key=key, columns=columns, ignored=ignored)


def _numbers(table: TableFile, columns: list[int]) -> Array:
    return table.numbers(columns, "encode such a column as numbers, or remove it", FILL_IN)


def _mapped(path: Path) -> Array:
    with path.open("rb") as file:
        shape, kind = read_npy_header(file, path.stat().st_size)
        left = path.stat().st_size - file.tell()
    if kind.kind not in "biuf":
        raise RawlsError(f"{path.name}: features must be real numbers, not {kind}")
    if math.prod(shape) * kind.itemsize > left:
        raise RawlsError(f"{path} is damaged or cut short: make or copy it again")
    mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def use_one_file_for_both(labels: NodeTable, features: NodeTable) -> None:
    """Of one file of labels and features, no column is unused, and the labels are no feature."""
    if labels.table is None or features.table is None or not features.path.samefile(labels.path):
        return
    if labels.columns[0] in features.columns:
        raise RawlsError(
            f"{features.path} has features and labels, and "
            f"{labels.table.column(labels.columns[0])} would be both: call the column of the "
            "labels 'label'"
        )
    labels.ignored = features.ignored = []


def feature_batches(
    nodes: NodeTable, numbers: NodeNumbers, named_in: str
) -> Iterator[FeatureBatch]:
    """Yield all rows of :func:`open_features`, each node's once.

    Args:
        nodes: The features.
        numbers: The nodes.
        named_in: The files that list them, for error messages.
    """
    if nodes.table is not None:
        return _table_batches(nodes, numbers, named_in)
    path, x, rows = nodes.path, nodes.values, nodes.num_rows

    def slices(size: int) -> Iterator[slice]:
        return (slice(first, min(first + size, rows)) for first in range(0, rows, size))

    def values(part: slice) -> Array:
        if not isinstance(x, np.memmap):
            return dense_rows(x, part.start, part.stop)
        # A mapping of its own for each batch: pages that were read do not stay resident.
        return checked_array(np.array(np.load(path, mmap_mode="r", allow_pickle=False)[part]))

    return ordered_batches(path, x.shape, slices, values)


def _table_batches(nodes: NodeTable, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
    seen = np.zeros(len(numbers), bool)

    def batch(table: TableFile) -> tuple[TableFile, FeatureBatch]:
        ids = ids_of(table, nodes.key, numbers.is_text).to_numpy()
        found = numbers.find(ids)
        refuse_unknown(table, ids, found, numbers.unknown(named_in))
        values = _numbers(table, nodes.columns)
        return table, FeatureBatch(found, _single(values, lambda r: f"{table.row(r)}: the node"))

    with reading(nodes.path, "features"):
        rows = max(1, CELLS // len(nodes.columns))
        for table, each in ordered_map(batch, nodes.tables(rows, numbers.is_text)):
            refuse_repeated(table, numbers.order[each.nodes], seen[each.nodes])
            seen[each.nodes] = True
            yield each
        missing = np.flatnonzero(~seen)
        if len(missing):
            raise no_row(nodes.path, numbers.order, missing)


def ordered_batches(
    path: Path,
    shape: tuple[int, ...],
    blocks: Callable[[int], Iterable[Any]],
    values: Callable[[Any], Array] = np.asarray,
) -> Iterator[FeatureBatch]:
    """Yield features in the order of the nodes.

    Args:
        path: Their file, for error messages.
        shape: The number of nodes and of columns.
        blocks: Yields all rows in order, in blocks of so many.
        values: Makes an array of a block, on a thread.
    """
    nodes, columns = shape
    size, rows = max(1, CELLS // columns), 0

    def batch(block: tuple[int, Any]) -> FeatureBatch:
        first, part = block[0], values(block[1])
        named = f"{path.name}: node {{}} (counted from 0)"
        single = _single(part, lambda row: named.format(first + row))
        return FeatureBatch(np.arange(first, first + len(single)), single)

    with reading(path, "features"):
        for each in ordered_map(batch, zip(count(0, size), blocks(size), strict=False)):
            rows += len(each.nodes)
            if rows > nodes:
                raise RawlsError(f"{path} has more rows than {nodes} nodes")
            yield each
        if rows < nodes:
            raise RawlsError(f"{path} has {rows} rows for {nodes} nodes")


def _single(values: Array, named: Callable[[int], str]) -> NDArray[np.float32]:
    """Values in single precision; those that it does not have are refused."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    bad = np.flatnonzero(~np.isfinite(single).all(1))
    if len(bad):
        row = int(bad[0])
        raise RawlsError(f"{named(row)} {feature_flaw(bool(np.isfinite(values[row]).all()))}")
    return single
