"""Features in batches of rows: tables by node id, arrays in the order of the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..node_features import compact, dense_rows, feature_flaw
from ..notes import GraphFacts
from ..readers.arrays import checked_array
from ..readers.arrays import read_header as read_npy_header
from ..readers.column_names import features_have_header
from ..readers.node_numbers import NodeNumbers, NodeRows, TextIdsError, no_row
from ..readers.node_tables import (
    feature_columns,
    feature_rows,
    feature_values,
    no_features,
    note_columns,
    read_features,
    refuse_repeated,
    refuse_unknown,
)
from ..readers.table_formats import TABLES
from ..readers.tables import MOST_COLUMNS, TableFile, read_header
from .edge_batches import estimated_rows

Array = NDArray[Any]
#: Numbers, and ids alone, that are read at a time.
CELLS, ROWS = 1 << 22, 1 << 20


class FeatureBatch(NamedTuple):
    """Rows of features and the numbers of their nodes."""

    nodes: Array
    values: NDArray[np.float32]


class FeatureSource(Protocol):
    """Features in a file; ``num_rows`` is known where they are in the order of the nodes."""

    @property
    def num_columns(self) -> int: ...

    @property
    def num_rows(self) -> int | None: ...

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
        """Yield all rows, each node's once."""
        ...


def open_features(
    path: Path, as_text: bool = False, progress: ProgressCallback = no_progress
) -> FeatureTable | OrderedFeatures:
    """Open a file of features, as ``--features`` names it.

    Tables and .npy files are read in batches; other formats are held in memory as they are.
    If ids are texts (``as_text``), the first line of a table may be a node. ``progress`` is called
    while the ids of a table are read.
    """
    suffix = path.suffix.lower()
    with reading(path, "features"):
        if suffix in TABLES:
            return FeatureTable(path, as_text, progress)
        if suffix == ".npy":
            return _mapped_array(path)
        values = read_features(path).values
        x = compact(values) if values.ndim == 2 and values.shape[1] else values
        return OrderedFeatures(
            path, values.shape, None, lambda rows: dense_rows(x, rows.start, rows.stop)
        )


def _mapped_array(path: Path) -> OrderedFeatures:
    with path.open("rb") as file:
        shape, kind = read_npy_header(file, path.stat().st_size)
        begin = file.tell()

    def read(rows: slice) -> Array:
        # A mapping of its own for each batch: pages that were read do not stay resident.
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        return checked_array(np.array(mapped[rows]))

    features = OrderedFeatures(path, shape, None, read)
    if kind.kind not in "biuf":
        raise RawlsError(f"{path.name}: features must be real numbers, not {kind}")
    if math.prod(shape) * kind.itemsize > path.stat().st_size - begin:
        raise RawlsError(f"{path} is damaged or cut short: make or copy it again")
    return features


class FeatureTable:
    """A table with a node id in each row."""

    num_rows = None

    def __init__(self, path: Path, as_text: bool, progress: ProgressCallback) -> None:
        self._path, self._progress = path, progress
        self._header = read_header(path, features_have_header, MOST_COLUMNS, whole=as_text)
        self._key, self.columns = feature_columns(self._header)
        self._header.require_rows()
        self.num_columns = len(self.columns)
        self.rows = feature_rows(self._header, self.ids)

    def add_facts(self, facts: GraphFacts, *, all_used: bool) -> None:
        """Report which column has the ids, where it is not the first, and which are not used."""
        note_columns(self._header, self._key, [] if all_used else no_features(self._header), facts)

    def ids(self, as_text: bool) -> Array:
        """Return the ids of all rows, for which the file is read once more.

        Raises:
            TextIdsError: If one is text, and not ``as_text``.
            RawlsError: If one is empty, or appears twice.
        """
        text = (self._key,) if as_text else ()
        with reading(self._path, "features"):
            parts, done, rows = [], 0, estimated_rows(self._path)
            for part in ordered_map(
                lambda table: self._ids(table, as_text),
                self._header.tables(ROWS, text, [self._key]),
            ):
                parts.append(part)
                done += len(part)
                self._progress(done, max(done, rows), f"reading the ids of {self._path.name}")
            ids = pd.concat(parts, ignore_index=True)
            refuse_repeated(self._header, ids)
        return ids.to_numpy(dtype=object if as_text else np.int64)

    def _ids(self, table: TableFile, as_text: bool) -> pd.Series[Any]:
        if table.has_text_ids(self._key) and not as_text:
            raise TextIdsError(f"{self._path} has text for ids")
        return table.ids(self._key, as_text)

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
        """Yield all rows; every node must have one, and only one."""
        seen = np.zeros(len(numbers), bool)
        rows = max(1, CELLS // self.num_columns)
        text = (self._key,) if numbers.is_text else ()
        with reading(self._path, "features"):
            for table, batch in ordered_map(
                lambda table: (table, self._batch(table, numbers, named_in)),
                self._header.tables(rows, text),
            ):
                refuse_repeated(table, numbers.order[batch.nodes], seen[batch.nodes])
                seen[batch.nodes] = True
                yield batch
            missing = np.flatnonzero(~seen)
            if len(missing):
                raise no_row(self._path, numbers.order, missing)

    def _batch(self, table: TableFile, numbers: NodeNumbers, named_in: str) -> FeatureBatch:
        ids = self._ids(table, numbers.is_text).to_numpy()
        nodes = numbers.find(ids)
        refuse_unknown(table, ids, nodes, numbers.unknown(named_in))
        values = feature_values(table, self.columns)
        return FeatureBatch(nodes, _single(values, lambda row: f"{table.row(row)}: the node"))


class OrderedFeatures:
    """Features in the order of the nodes.

    Args:
        path: Their file, for error messages.
        shape: The rows and columns.
        blocks: Yields all rows in order, in blocks of so many; by default their numbers, as slices.
        values: Makes an array of a block, on a thread.
    """

    def __init__(
        self,
        path: Path,
        shape: tuple[int, ...],
        blocks: Callable[[int], Iterable[Any]] | None = None,
        values: Callable[[Any], Array] = np.asarray,
    ) -> None:
        if len(shape) != 2 or not all(int(size) == size > 0 for size in shape):
            raise RawlsError(
                f"{path.name}: features must be a matrix with a row for each node, they have the "
                f"shape {tuple(shape)}"
            )
        self._path, self._blocks, self._values = path, blocks or self._slices, values
        self.num_rows, self.num_columns = int(shape[0]), int(shape[1])
        self.rows = NodeRows(path, self.num_rows)

    def _slices(self, size: int) -> Iterator[slice]:
        for first in range(0, self.num_rows, size):
            yield slice(first, min(first + size, self.num_rows))

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[FeatureBatch]:
        """Yield all rows, of which there must be one for each node."""
        size, rows = max(1, CELLS // self.num_columns), 0

        def batch(block: tuple[int, Any]) -> FeatureBatch:
            first, values = block[0], self._values(block[1])
            named = f"{self._path.name}: node {{}} (counted from 0)"
            single = _single(values, lambda row: named.format(first + row))
            return FeatureBatch(np.arange(first, first + len(single)), single)

        with reading(self._path, "features"):
            blocks = zip(count(0, size), self._blocks(size), strict=False)
            for each in ordered_map(batch, blocks):
                rows += len(each.nodes)
                if rows > self.num_rows:
                    raise RawlsError(f"{self._path} has more rows than {self.num_rows} nodes")
                yield each
            if rows < self.num_rows:
                raise RawlsError(f"{self._path} has {rows} rows for {self.num_rows} nodes")


def _single(values: Array, named: Any) -> NDArray[np.float32]:
    """Values in single precision; those that it does not have are refused."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    bad = np.flatnonzero(~np.isfinite(single).all(1))
    if len(bad):
        row = int(bad[0])
        finite = bool(np.isfinite(values[row]).all())
        raise RawlsError(f"{named(row)} {feature_flaw(finite)}")
    return single
