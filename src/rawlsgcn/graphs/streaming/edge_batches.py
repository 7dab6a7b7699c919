"""An edge list in batches: the numbers of both ends, and weights; a damaged row is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..notes import GraphFacts
from ..readers.edge_lists import edge_columns, edges_have_header, unknown_node
from ..readers.table_formats import ParquetTable, is_parquet
from ..readers.tables import MOST_COLUMNS, TableFile, read_header
from .node_numbers import NodeNumbers
from .ordered_threads import ordered_map

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
    """

    def __init__(self, path: Path, facts: GraphFacts) -> None:
        self.path = path
        with reading(path, "a graph"):
            self._header = read_header(path, edges_have_header, MOST_COLUMNS)
            self._source, self._target, self._weight = edge_columns(self._header, facts)
        self.weighted = self._weight is not None
        self.estimated_rows = _estimated_rows(path)

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes.

        Args:
            numbers: The nodes.
            named_in: The file that lists them, for error messages.
        """
        text = (self._source, self._target) if numbers.is_text else ()
        with reading(self.path, "a graph"):
            yield from ordered_map(
                lambda table: self._batch(table, numbers, named_in),
                self._header.tables(ROWS, text),
            )

    def _batch(self, table: TableFile, numbers: NodeNumbers, named_in: str) -> EdgeBatch:
        return edge_batch(table, (self._source, self._target), self._weight, numbers, named_in)


def edge_batch(
    table: TableFile,
    ends: tuple[int, int],
    weight_column: int | None,
    numbers: NodeNumbers,
    named_in: str,
) -> EdgeBatch:
    """Return the arcs of some rows, or raise an error that names the damaged one."""
    for column in ends:
        table.has_text_ids(column)  # looks for empty ids
    ids = [table.ids(column, numbers.is_text).to_numpy() for column in ends]
    source, target = (numbers.find(each) for each in ids)
    unknown = np.flatnonzero((source < 0) | (target < 0))
    if len(unknown):
        row = int(unknown[0])
        node = ids[0][row] if source[row] < 0 else ids[1][row]
        all_nodes = ": list every node there (in labels with -1 for no label)"
        cure = "" if numbers.is_range else all_nodes
        raise RawlsError(
            f"{table.row(row)}: node {node} is {unknown_node(numbers.order, named_in)}{cure}"
        )
    if weight_column is None:
        return EdgeBatch(source, target, None)
    weight = table.numbers([weight_column])[:, 0].astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        row = int(wrong[0])
        raise RawlsError(
            f"{table.row(row)}: the edge between node {ids[0][row]} and node {ids[1][row]} has "
            f"the weight {weight[row]}: weights must be finite and not negative"
        )
    return EdgeBatch(source, target, weight)


def _estimated_rows(path: Path) -> int:
    """About how many rows a table has, for the progress."""
    if is_parquet(path):
        return int(ParquetTable(path).num_rows)
    with path.open("rb") as file:
        start = file.read(_SAMPLED_BYTES)
    return path.stat().st_size * max(1, start.count(b"\n")) // max(1, len(start))
