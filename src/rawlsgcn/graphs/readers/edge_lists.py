"""Edge lists: ``source,target[,weight]`` in .csv, .tsv or .parquet, ids as numbers or text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError
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
from .node_numbers import NodeNumbers, NodeRows, file_of_nodes, no_row, node_order
from .node_tables import NodeTable, refuse_unknown
from .table_formats import separator_name
from .tables import TableFile, TableHeader, read_table

Array = NDArray[Any]
_NUMBERINGS = UNNAMED_COLUMNS | {"index", "edge_id"}
"""Names of a first column that only numbers the edges."""


def read_edge_list(path: Path, tables: list[NodeTable]) -> RawGraph:
    """The edges of a table, between the nodes that ``tables`` (labels, then features) name.

    The nodes are 0 to n - 1 where a table is in node order and the ids are whole numbers; else
    the ids of the first table in its order; else the ids of the edges themselves (numbers sorted,
    text as it first appears). Labels need not list every node: those that only the features, or
    only the edges, name come after them and are unlabeled.
    """
    table = read_table(path, edges_have_header)
    facts = GraphFacts()
    columns = edge_columns(table, facts)
    ends = columns[:2]
    keys = [(table, end) for end in ends]
    keys += [(each.table, each.key) for each in tables if each.table is not None]
    text = [each.has_text_ids(column) for each, column in keys]  # looks for empty ids in all
    as_text = any(text)
    ids, codes = encode(table.ids(ends[0], as_text), table.ids(ends[1], as_text), as_text)
    rows = [each.rows for each in tables]
    if as_text:
        refuse_repeated_header(table, ends, ids, codes, lambda: among_numbers([ids]))
        refuse_unknown_header(table, ids, codes, rows)
    order = node_order(rows, as_text, path.name, lambda: ids)
    numbers = NodeNumbers(order)
    places = numbers.find(ids)
    source, target = (places[each] for each in codes)
    named_in = file_of_nodes(rows, as_text) if rows else path.name
    weight = checked_weights(table, columns, (source, target), numbers, named_in)
    raw = RawGraph(path.stem, source, target, weight, facts=facts, graph_from=path.name)
    if not any(each.table is None for each in tables):
        raw.num_nodes = len(order)
    if not numbers.is_range:
        raw.node_ids = order
    attach(raw, tables, numbers)
    return raw


def attach(raw: RawGraph, tables: list[NodeTable], numbers: NodeNumbers) -> None:
    """Bring tables keyed by node id into the order of the nodes; refuse ids that do not match."""
    for each in tables:
        others = [raw.graph_from, *(other.path.name for other in tables if other is not each)]
        attach_table(raw, each, numbers, others)


def attach_table(raw: RawGraph, nodes: NodeTable, numbers: NodeNumbers, others: list[str]) -> None:
    """Bring one table into the order of the nodes, which the files ``others`` name too."""
    if nodes.table is None:
        return
    ids = nodes.ids(numbers.is_text)
    where = others[-1] if numbers.is_range else " or ".join(others)
    refuse_unknown(nodes.table, ids, numbers.find(ids), numbers.unknown(where))
    rows = NodeNumbers(ids).find(numbers.order)
    missing = np.flatnonzero(rows < 0)
    if len(missing) and nodes.absent is not None:
        raw.facts.not_in_labels = len(missing)
    elif len(missing):
        raise no_row(nodes.path, numbers.order, missing)
    nodes.take(rows)


def checked_weights(
    table: TableFile,
    columns: tuple[int, int, int | None],
    ends: tuple[Array, Array],
    numbers: NodeNumbers,
    named_in: str,
) -> Array | None:
    """Return the weights of some edges, given the numbers of their ends.

    An end that is no node (-1), and a weight that is not finite or negative, are
    named with their row; ``columns`` are those of sources, targets and weights.
    """
    unknown = np.flatnonzero((ends[0] < 0) | (ends[1] < 0))
    if len(unknown):
        row = int(unknown[0])
        end = columns[0] if ends[0][row] < 0 else columns[1]
        node = table.ids(end, numbers.is_text).iloc[row]
        cure = ": list every node there (in labels with -1 for no label)"
        cure = "" if numbers.is_range else cure
        raise RawlsError(f"{table.row(row)}: node {node} is {numbers.unknown(named_in)}{cure}")
    if columns[2] is None:
        return None
    weight = table.numbers([columns[2]])[:, 0]
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        row = int(wrong[0])
        first, second = (table.ids(end, numbers.is_text).iloc[row] for end in columns[:2])
        raise RawlsError(
            f"{table.row(row)}: the edge between node {first} and node {second} has the weight "
            f"{weight[row]}: weights must be finite and not negative"
        )
    return weight


def edge_columns(table: TableHeader, facts: GraphFacts) -> tuple[int, int, int | None]:
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


def encode(source: Any, target: Any, as_text: bool) -> tuple[Array, tuple[Array, Array]]:
    """The distinct ids (numbers sorted, text as it first appears) and each end's place in them."""
    both = pd.concat([source, target], ignore_index=True)
    if as_text:
        codes, distinct = pd.factorize(both)
        ids = np.asarray(distinct, dtype=object)
    else:
        numbers = both.to_numpy()
        low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
        if high - low <= 4 * len(numbers):
            # A table of which numbers occur: ten times as fast as sorting or hashing them.
            occurs = np.zeros(high - low + 1, dtype=bool)
            occurs[numbers - low] = True
            ids = np.flatnonzero(occurs) + low
            codes = (np.cumsum(occurs) - 1)[numbers - low]
        else:
            ids, codes = np.unique(numbers, return_inverse=True)
    return ids, (codes[: len(source)], codes[len(source) :])


def refuse_repeated_header(
    table: TableFile,
    columns: tuple[int, int],
    ids: Array,
    codes: tuple[Array, Array],
    among_numbers: Callable[[], bool],
) -> None:
    """Refuse an edge between the names of columns: a header in the middle of the rows.

    Such words may be nodes of a graph of words; so only the names of the table's own header are
    refused, or words ``among_numbers``: all other ids of the graph are numbers.
    """
    named = [_named(ids, names) for names in (SOURCE_COLUMNS, TARGET_COLUMNS)]
    rows = np.flatnonzero(named[0][codes[0]] & named[1][codes[1]])
    own = [table.words[column] for column in columns] if table.names is not None else []
    every = len(rows) > 0 and among_numbers()
    for row in rows.tolist():
        ends = [str(ids[each[row]]).lower() for each in codes]
        if every or ends == own:
            raise RawlsError(
                f"{table.row(row)}: '{ends[0]}' and '{ends[1]}' are names of columns, not nodes: "
                "remove that line, or put it above all edges"
            )


def refuse_unknown_header(
    table: TableFile,
    ids: Array,
    codes: tuple[Array, Array],
    rows: Sequence[NodeRows],
    further: Callable[[], Iterable[Array]] = tuple,
) -> None:
    """Refuse a first edge between two ids that are nowhere else, like names of columns.

    ``further`` returns the ids of the edges after those in ``table``, in parts.
    """
    if table.names is not None or table.first:
        return
    first = [int(each[0]) for each in codes]
    if any(sum(int((each == one).sum()) for each in codes) > 1 for one in first):
        return
    words = [ids[one] for one in first]
    listed = [each.ids(True) for each in rows if each.num_rows is None]
    if listed and not any(word in each for each in (*listed, *further()) for word in words):
        raise RawlsError(
            f"{table.row(0)}: '{words[0]}' and '{words[1]}' are in no other line and in no other "
            "file: if they are names of columns, call them 'source' and 'target', else write these "
            "names above them"
        )


def among_numbers(parts: Iterable[Array]) -> bool:
    """Whether all ids but names of columns are numbers; takes parts up to the first that is not."""
    numbers = 0
    for ids in parts:
        others = ids[~(_named(ids, SOURCE_COLUMNS) | _named(ids, TARGET_COLUMNS))]
        if not all(map(is_number, others)):
            return False
        numbers += len(others)
    return numbers > 0


def _named(ids: Array, names: frozenset[str]) -> NDArray[np.bool_]:
    """Which of the ids are names of columns, in lower case, upper case or capitalized."""
    forms = [form for name in names for form in (name, name.upper(), name.capitalize())]
    return np.isin(np.arange(len(ids)), pd.Index(ids).get_indexer(pd.Index(forms)))
