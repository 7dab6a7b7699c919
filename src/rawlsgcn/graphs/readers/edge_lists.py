"""Edge lists: ``source,target[,weight]`` in .csv, .tsv or .parquet, ids as numbers or text.

A table that is in memory is one batch; otherwise the file is read some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError, reading
from ..._core.progress import ProgressCallback, no_progress
from ..._core.threads import ordered_map
from ..notes import GraphFacts
from ..raw_graph import RawGraph
from .column_names import (
    SOURCE_COLUMNS,
    TARGET_COLUMNS,
    UNNAMED_COLUMNS,
    WEIGHT_COLUMNS,
    edges_have_header,
    is_number,
    missing_column,
)
from .node_numbers import NodeNumbers, TextIdsError
from .node_order import attach_all, file_of_nodes, number_nodes
from .node_tables import ROWS, NodeTable, estimated_rows, ids_of
from .table_formats import separator_name
from .tables import TableFile, TableHeader, read_table

Array = NDArray[Any]
Codes = tuple[Array, Array]
_NUMBERINGS = UNNAMED_COLUMNS | {"index", "edge_id"}
"""Names of a first column that only numbers the edges."""


class EdgeBatch(NamedTuple):
    """Some arcs between numbered nodes."""

    source: Array
    target: Array
    weight: Array | None


def read_edge_list(path: Path, tables: list[NodeTable]) -> RawGraph:
    """The edges of a table, between the nodes that ``tables`` (labels, then features) name."""
    facts = GraphFacts()
    edges = EdgeTable(read_table(path, edges_have_header), facts, tables)
    as_text = any(each.has_text_ids for each in tables)
    try:
        return _read(edges, facts, tables, as_text)
    except TextIdsError:  # one word among numbers makes texts of all ids
        return _read(edges, facts, tables, True)


def _read(edges: EdgeTable, facts: GraphFacts, tables: list[NodeTable], as_text: bool) -> RawGraph:
    path = edges.path
    numbers = number_nodes(tables, as_text, path.name, edges.ids)
    named_in = file_of_nodes(tables, as_text) if tables else path.name
    ((source, target, weight),) = edges.batches(numbers, named_in)
    raw = RawGraph(path.stem, source, target, weight, facts=facts, graph_from=path.name)
    if not any(each.table is None for each in tables):
        raw.num_nodes = len(numbers)
    if not numbers.is_range:
        raw.node_ids = numbers.order
    attach_all(raw, tables, numbers)
    return raw


class EdgeTable:
    """An edge list.

    Args:
        table: Its rows, or the header of a table whose rows are read when they are needed.
        facts: Columns without names that are known, and without use, are noted here.
        tables: The labels and features.
        progress: Called while :meth:`ids` reads.
    """

    def __init__(
        self,
        table: TableHeader,
        facts: GraphFacts,
        tables: Sequence[NodeTable] = (),
        progress: ProgressCallback = no_progress,
    ) -> None:
        self.path, self._table = table.path, table
        self._node_tables, self._progress = tables, progress
        source, target, self._weight = _edge_columns(table, facts)
        self._ends = source, target
        self.weighted = self._weight is not None
        self._whole: tuple[Array, Codes] | None = None

    @cached_property
    def estimated_rows(self) -> int:
        """About how many arcs there are."""
        return estimated_rows(self._table)

    def ids(self, as_text: bool) -> Array:
        """Return the ids: numbers sorted, texts of all sources, then targets, each where first."""
        found: tuple[list[Array], list[Array]] = ([], [])
        with reading(self.path, "a graph"):
            text = self._ends if as_text else ()
            for table in self._table.tables(ROWS, text, list(self._ends)):
                done, what = table.first + len(table.frame), f"reading the ids of {self.path.name}"
                self._progress(done, max(done, self.estimated_rows), what)
                if as_text:
                    ids, codes = self._encoded(table)
                    ends = [ids[pd.unique(code)] for code in codes]
                else:
                    ends = [pd.unique(ids_of(table, end, False).to_numpy()) for end in self._ends]
                for parts, distinct in zip(found, ends, strict=True):
                    parts.append(distinct)
                    if sum(map(len, parts)) > 2 * max(ROWS, len(parts[0])):
                        parts[:] = [pd.unique(np.concatenate(parts))]
        every: Array = pd.unique(np.concatenate([*found[0], *found[1]]))
        return every if as_text else np.sort(every)

    def batches(self, numbers: NodeNumbers, named_in: str) -> Iterator[EdgeBatch]:
        """Yield the arcs; both ends must be nodes, which the file ``named_in`` lists.

        Raises:
            TextIdsError: If an id is text, and those of the nodes are numbers.
        """
        with reading(self.path, "a graph"):
            tables = self._table.tables(ROWS, self._ends if numbers.is_text else ())
            for_each = map if isinstance(self._table, TableFile) else ordered_map
            yield from for_each(lambda table: self._batch(table, numbers, named_in), tables)

    def _batch(self, table: TableFile, numbers: NodeNumbers, named_in: str) -> EdgeBatch:
        if numbers.is_text:
            ids, codes = self._encoded(table)
            places = numbers.find(ids)
            source, target = (places[code] for code in codes)
        else:
            ends = (ids_of(table, end, False).to_numpy() for end in self._ends)
            source, target = map(numbers.find, ends)
        unknown = np.flatnonzero((source < 0) | (target < 0))
        if len(unknown):
            row = int(unknown[0])
            node = self._named(table, row, numbers)[0 if source[row] < 0 else 1]
            cure = ": list every node there (in labels with -1 for no label)"
            cure = "" if numbers.is_range else cure
            raise RawlsError(f"{table.row(row)}: node {node} is {numbers.unknown(named_in)}{cure}")
        if self._weight is None:
            return EdgeBatch(source, target, None)
        weight = table.numbers([self._weight])[:, 0]
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if len(wrong):
            row = int(wrong[0])
            first, second = self._named(table, row, numbers)
            raise RawlsError(
                f"{table.row(row)}: the edge between node {first} and node {second} has the weight "
                f"{weight[row]}: weights must be finite and not negative"
            )
        return EdgeBatch(source, target, weight.astype(np.float64, copy=False))

    def _named(self, table: TableFile, row: int, numbers: NodeNumbers) -> list[Any]:
        """The ids of both ends of an edge."""
        return [table.ids(end, numbers.is_text).iloc[row] for end in self._ends]

    def _encoded(self, table: TableFile) -> tuple[Array, Codes]:
        """The distinct ids of some rows, as texts, and each end's place in them."""
        if self._whole is None:
            ids, codes = self._texts(table)
            self._refuse_repeated_header(table, ids, codes)
            self._refuse_unknown_header(table, ids, codes)
            if table is not self._table:
                return ids, codes
            self._whole = ids, codes
        return self._whole

    def _texts(self, table: TableFile) -> tuple[Array, Codes]:
        both = pd.concat([ids_of(table, end, True) for end in self._ends], ignore_index=True)
        codes, distinct = pd.factorize(both)
        rows = len(table.frame)
        return np.asarray(distinct, dtype=object), (codes[:rows], codes[rows:])

    def _all_ids(self, after: int = -1) -> Iterator[Array]:
        """The ids as texts, in parts: of all tables, or of those that begin later than a row."""
        for table in self._table.tables(ROWS, self._ends, list(self._ends)):
            if table.first > after:
                yield self._texts(table)[0]

    def _refuse_repeated_header(self, table: TableFile, ids: Array, codes: Codes) -> None:
        """Refuse an edge between the names of columns: a header in the middle of the rows.

        Such words may be nodes of a graph of words; so only the names of the table's own header
        are refused, or any of them where all other ids of the graph are numbers.
        """
        named = [_named(ids, names) for names in (SOURCE_COLUMNS, TARGET_COLUMNS)]
        rows = np.flatnonzero(named[0][codes[0]] & named[1][codes[1]])
        own = [table.words[column] for column in self._ends] if table.names is not None else []
        for row in rows.tolist():
            ends = [str(ids[each[row]]).lower() for each in codes]
            if ends == own or self._others_are_numbers:
                raise RawlsError(
                    f"{table.row(row)}: '{ends[0]}' and '{ends[1]}' are names of columns, not "
                    "nodes: remove that line, or put it above all edges"
                )

    @cached_property
    def _others_are_numbers(self) -> bool:
        """Whether all ids but names of columns are numbers; reads up to the first that is not."""
        numbers = 0
        for ids in self._all_ids():
            others = ids[~(_named(ids, SOURCE_COLUMNS) | _named(ids, TARGET_COLUMNS))]
            if not all(map(is_number, others)):
                return False
            numbers += len(others)
        return numbers > 0

    def _refuse_unknown_header(self, table: TableFile, ids: Array, codes: Codes) -> None:
        """Refuse a first edge between two ids that are nowhere else, like names of columns."""
        if table.names is not None or table.first:
            return
        first = [int(each[0]) for each in codes]
        if any(sum(int((each == one).sum()) for each in codes) > 1 for one in first):
            return
        words = [ids[one] for one in first]
        listed = [each.ids(True) for each in self._node_tables if each.table is not None]
        parts = (*listed, *self._all_ids(after=table.first)) if listed else ()
        if listed and not any(word in each for each in parts for word in words):
            raise RawlsError(
                f"{table.row(0)}: '{words[0]}' and '{words[1]}' are in no other line and in no "
                "other file: if they are names of columns, call them 'source' and 'target', else "
                "write these names above them"
            )


def array_batches(
    where: str, nodes: int, blocks: Iterable[tuple[Array, Array]]
) -> Iterator[EdgeBatch]:
    """Yield arcs without weights from blocks of sources and targets, numbers of nodes."""
    done = 0
    for both in blocks:
        source, target = (side.astype(np.int64, copy=False) for side in both)
        low, high = np.minimum(source, target), np.maximum(source, target)
        wrong = np.flatnonzero((low < 0) | (high >= nodes))
        if len(wrong):
            place = int(wrong[0])
            raise RawlsError(
                f"{where}: arc {done + place} (counted from 0) is between {source[place]} and "
                f"{target[place]}, but the nodes are numbered from 0 to {nodes - 1}"
            )
        yield EdgeBatch(source, target, None)
        done += len(source)


def _edge_columns(table: TableHeader, facts: GraphFacts) -> tuple[int, int, int | None]:
    """Which columns hold source, target and weight."""
    width = table.width
    if width < 2:
        raise RawlsError(
            f"{table.path} has one column: an edge list has source and target, separated by "
            f"{separator_name(table.path)}"
        )
    if table.names is None:
        if width > 3:
            raise RawlsError(
                f"{table.path} has {width} columns and no header: expected source,target[,weight]"
            )
        return 0, 1, 2 if width == 3 else None
    source, target = table.find(SOURCE_COLUMNS), table.find(TARGET_COLUMNS)
    weight = table.find(WEIGHT_COLUMNS)
    rest = [index for index in range(width) if index not in (source, target, weight)]
    if source is None or target is None:
        if width > 2 and table.names[0].strip().lower() in _NUMBERINGS:
            rest.remove(0)
        if len(rest) < (source is None) + (target is None):
            if source is None:
                raise missing_column(table.path, "source nodes", SOURCE_COLUMNS)
            raise missing_column(table.path, "target nodes", TARGET_COLUMNS)
        source = rest.pop(0) if source is None else source
        target = rest.pop(0) if target is None else target
        # Where the columns are called 0, 1, 2, their places say what they are.
        numbered = table.has_unnamed_index and all(map(is_number, table.names[1:]))
        if weight is None and rest and numbered:
            weight = rest.pop(0)
        ends = f"{table.column(source)} and {table.column(target)}"
        facts.columns_assumed.append((table.path.name, ends, "source and target"))
    unused = [table.column(index) for index in rest if index or not table.has_unnamed_index]
    if unused:
        facts.columns_ignored.append((table.path.name, ", ".join(unused[:3])))
    return source, target, weight


def _named(ids: Array, names: frozenset[str]) -> NDArray[np.bool_]:
    """Which of the ids are names of columns, in lower case, upper case or capitalized."""
    forms = [form for name in names for form in (name, name.upper(), name.capitalize())]
    return np.isin(np.arange(len(ids)), pd.Index(ids).get_indexer(pd.Index(forms)))
