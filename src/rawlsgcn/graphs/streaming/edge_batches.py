"""An edge list in batches: the numbers of both ends, and weights; a damaged row is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..notes import GraphFacts
from ..readers.column_names import edges_have_header
from ..readers.edge_lists import (
    among_numbers,
    checked_weights,
    edge_columns,
    encode,
    refuse_repeated_header,
    refuse_unknown_header,
)
from ..readers.node_numbers import NodeNumbers, NodeRows, TextIdsError
from ..readers.table_formats import ParquetTable, is_parquet
from ..readers.tables import MOST_COLUMNS, TableFile, read_header

Array = NDArray[Any]
#: Rows that are read at a time.
ROWS = 1 << 20
_SAMPLED_BYTES = 1 << 20


class EdgeBatch(NamedTuple):
    """Some arcs between numbered nodes."""

    source: Array
    target: Array
    weight: Array | None


class EdgeSource(Protocol):
    """Arcs in files; ``estimated_rows`` is for the progress."""

    @property
    def path(self) -> Path: ...

    @property
    def weighted(self) -> bool: ...

    @property
    def estimated_rows(self) -> int: ...

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes, which the file ``named_in`` lists."""
        ...


class EdgeTable:
    """An edge list in a .csv, .tsv, .txt or .parquet file.

    Args:
        path: The file.
        facts: Columns without names that are known, and without use, are noted here.
        rows: The nodes that the files of labels and features list.
        as_text: Whether ids are texts: then the first line may be an edge.
        progress: Called while :meth:`text_ids` reads.
    """

    def __init__(
        self,
        path: Path,
        facts: GraphFacts,
        rows: Sequence[NodeRows],
        as_text: bool = False,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self.path, self._rows, self._progress = path, rows, progress
        with reading(path, "a graph"):
            self._header = read_header(path, edges_have_header, MOST_COLUMNS, whole=as_text)
            source, target, self._weight = edge_columns(self._header, facts)
            self._header.require_rows()
        self._ends = source, target
        self.weighted = self._weight is not None
        self.estimated_rows = estimated_rows(path)

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes.

        Args:
            numbers: The nodes.
            named_in: The file that lists them, for error messages.

        Raises:
            TextIdsError: If an id is text, and those of the nodes are numbers.
            RawlsError: If a row is damaged.
        """
        text = self._ends if numbers.is_text else ()
        with reading(self.path, "a graph"):
            yield from ordered_map(
                lambda table: self._batch(table, numbers, named_in),
                self._header.tables(ROWS, text),
            )

    def text_ids(self) -> Array:
        """Return the ids of all sources, then of all targets, as texts, each where it is first."""
        found: tuple[list[Array], list[Array]] = ([], [])
        with reading(self.path, "a graph"):
            for table in self._header.tables(ROWS, self._ends, list(self._ends)):
                done, what = table.first + len(table.frame), f"reading the ids of {self.path.name}"
                self._progress(done, max(done, self.estimated_rows), what)
                ids, codes = self._encoded(table)
                for parts, side in zip(found, codes, strict=True):
                    parts.append(ids[pd.unique(side)])
                    if sum(map(len, parts)) > 2 * max(ROWS, len(parts[0])):
                        parts[:] = [pd.unique(np.concatenate(parts))]
        return pd.unique(np.concatenate([*found[0], *found[1]]))

    def _batch(self, table: TableFile, numbers: NodeNumbers, named_in: str) -> EdgeBatch:
        ends = None
        if numbers.is_text:
            ids, codes = self._encoded(table)
            places = numbers.find(ids)
            ends = places[codes[0]], places[codes[1]]
        elif any(table.has_text_ids(column) for column in self._ends):  # looks for empty ids
            raise TextIdsError(f"{self.path} has text for ids")
        return edge_batch(table, self._ends, self._weight, numbers, named_in, ends)

    def _encoded(self, table: TableFile) -> tuple[Array, tuple[Array, Array]]:
        """The distinct ids of some rows, as texts, and each end's place in them."""
        ids, codes = self._texts(table)
        refuse_repeated_header(table, self._ends, ids, codes, lambda: self._among_numbers)
        refuse_unknown_header(table, ids, codes, self._rows, lambda: self._parts(table))
        return ids, codes

    def _texts(self, table: TableFile) -> tuple[Array, tuple[Array, Array]]:
        for column in self._ends:
            table.has_text_ids(column)  # looks for empty ids
        source, target = (table.ids(column, True) for column in self._ends)
        return encode(source, target, True)

    @cached_property
    def _among_numbers(self) -> bool:
        """Whether all ids but names of columns are numbers; reads up to the first that is not."""
        return among_numbers(self._parts())

    def _parts(self, after: TableFile | None = None) -> Iterator[Array]:
        """The ids as texts, in parts: those of all rows, or of the rows after a first table."""
        for table in self._header.tables(ROWS, self._ends, list(self._ends)):
            if after is None or table.first > after.first:
                yield self._texts(table)[0]


class EdgeArrays:
    """Arcs without weights, in arrays of the numbers of nodes.

    Args:
        path: Their file, for error messages.
        arcs: How many they are.
        blocks: Yields the sources and the targets of consecutive arcs.
    """

    weighted = False

    def __init__(
        self, path: Path, arcs: int, blocks: Callable[[], Iterable[tuple[Array, Array]]]
    ) -> None:
        self.path, self.estimated_rows, self._blocks = path, arcs, blocks

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes."""
        done = 0
        with reading(self.path, "edges"):
            for both in self._blocks():
                source, target = (side.astype(np.int64, copy=False) for side in both)
                wrong = np.flatnonzero((numbers.find(source) < 0) | (numbers.find(target) < 0))
                if len(wrong):
                    place = int(wrong[0])
                    raise RawlsError(
                        f"{self.path.name}: arc {done + place} (counted from 0) is between "
                        f"{source[place]} and {target[place]}, but the nodes are numbered from 0 "
                        f"to {len(numbers) - 1}"
                    )
                yield EdgeBatch(source, target, None)
                done += len(source)


def edge_batch(
    table: TableFile,
    ends: tuple[int, int],
    weight_column: int | None,
    numbers: NodeNumbers,
    named_in: str,
    found: tuple[Array, Array] | None = None,
) -> EdgeBatch:
    """Return the arcs of some rows, whose ends may be ``found``; a damaged row is an error."""
    if found is None:
        for column in ends:
            table.has_text_ids(column)  # looks for empty ids
        ids = (table.ids(column, numbers.is_text).to_numpy() for column in ends)
        source, target = (numbers.find(each) for each in ids)
    else:
        source, target = found
    columns = (*ends, weight_column)
    weight = checked_weights(table, columns, (source, target), numbers, named_in)
    return EdgeBatch(source, target, None if weight is None else weight.astype(np.float64))


def estimated_rows(path: Path) -> int:
    """Return about how many rows a table has, for the progress."""
    if is_parquet(path):
        return int(ParquetTable(path).num_rows)
    with path.open("rb") as file:
        start = file.read(_SAMPLED_BYTES)
    return path.stat().st_size * max(1, start.count(b"\n")) // max(1, len(start))
