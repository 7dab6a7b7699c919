"""Edge lists: ``source,target[,weight]`` in .csv, .tsv or .parquet, ids as numbers or text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import RawlsError
from .found import Found
from .sides import Side
from .tables import Table, is_number, read_table

Array = NDArray[Any]
_SOURCES = {"source", "src", "from", "u", "node1", "source_id", "from_id", "head"}
_TARGETS = {"target", "dst", "to", "v", "node2", "target_id", "to_id", "tail", "destination"}
_WEIGHTS = {"weight", "weights", "w", "edge_weight", "value", "count"}


def read_edge_list(path: Path, sides: list[Side]) -> Found:
    """The edges of a table, between the nodes that ``sides`` (labels, then features) name.

    The nodes are, in this order: 0 to n - 1 where a side is in node order and the ids are whole
    numbers; else the ids of the first side in its own order; else the ids of the edges
    themselves (numbers sorted, text as it first appears).
    """
    table = read_table(path, _has_header)
    source, target, weight, notes = _columns(table)
    found = Found(path.stem, *_ids(table, source, target, sides), notes=notes, graph_from=path.name)
    if weight is not None:
        found.weight = table.numbers([weight])[:, 0]
    as_text = found.source.dtype == object
    order = _node_order(found, sides, as_text)
    found.num_nodes = len(order)
    found.source, found.target = (
        _positions(order, ids, lambda row: f"{table.row(row)}", _named_in(sides))
        for ids in (found.source, found.target)
    )
    if as_text:
        found.node_ids = order.tolist()
    elif not is_range(order):
        found.node_ids = order
    attach(found, sides, order)
    return found


def attach(found: Found, sides: list[Side], order: Array) -> None:
    """Bring tables keyed by node id into the order of the nodes; refuse ids that do not match."""
    for side in sides:
        if side.table is None:
            continue
        ids = side.ids(as_text=order.dtype == object)
        if is_range(order):
            _positions(order, ids, side.table.row, found.graph_from)
        rows = pd.Index(ids).get_indexer(pd.Index(order))
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            named = ", ".join(str(order[node]) for node in missing[:3])
            more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
            raise RawlsError(
                f"{side.path.name} has no row for node {named}{more}: every node needs one "
                "(in labels, write -1 for an unlabelled node)"
            )
        if len(ids) > len(order):
            extra = int((pd.Index(order).get_indexer(pd.Index(ids)) < 0).argmax())
            raise RawlsError(
                f"{side.table.row(extra)}: node {ids[extra]} is not among the {len(order):,} nodes "
                f"of {found.graph_from}{_others(sides, side)}"
            )
        side.take(rows)


def _others(sides: list[Side], side: Side) -> str:
    names = [other.path.name for other in sides if other is not side]
    return f" and {names[0]}" if names else ""


def is_range(order: Array) -> bool:
    """Whether the ids are just 0 to n - 1, the numbers of the rows."""
    return order.dtype != object and bool(np.array_equal(order, np.arange(len(order))))


def _has_header(cells: list[str]) -> bool:
    """A line of known names, or one whose weight is a word; other text may well be ids."""
    words = [cell.strip().lower() for cell in cells]
    named = len(words) > 1 and bool(_SOURCES & set(words)) and bool(_TARGETS & set(words))
    return named or (len(words) > 2 and words[2] in _WEIGHTS and not is_number(words[2]))


def _columns(table: Table) -> tuple[int, int, int | None, list[str]]:
    """Which columns hold source, target and weight, and a note on those that are not used."""
    width = table.frame.shape[1]
    if width < 2:
        raise RawlsError(
            f"{table.path} has one column: an edge list has source and target, separated by "
            f"{'tabs' if table.path.suffix.lower() == '.tsv' else 'commas'}"
        )
    if table.names is None:
        if width > 3:
            raise RawlsError(
                f"{table.path} has {width} columns and no header: expected source,target[,weight]"
            )
        return 0, 1, 2 if width == 3 else None, []
    source, target = table.find(_SOURCES), table.find(_TARGETS)
    if source is None or target is None:
        source, target = 0, 1
    weight = table.find(_WEIGHTS)
    unused = [table.column(i) for i in range(width) if i not in (source, target, weight)]
    notes = []
    if unused:
        verb = "is" if len(unused) == 1 else "are"
        notes.append(f"{table.path.name}: {', '.join(unused[:3])} {verb} not used.")
    return source, target, weight, notes


def _ids(table: Table, source: int, target: int, sides: list[Side]) -> tuple[Array, Array]:
    """Both id columns, as numbers only if the ids of every table are numbers."""
    keyed = [side.table.ids(0).dtype == object for side in sides if side.table is not None]
    columns = table.ids(source), table.ids(target)
    if not any(keyed) and all(column.dtype != object for column in columns):
        return columns
    return table.text(source), table.text(target)


def _node_order(found: Found, sides: list[Side], as_text: bool) -> Array:
    """The ids of the nodes, in the order in which the graph numbers them."""
    keyed = [side for side in sides if side.table is not None]
    in_order = [side for side in sides if side.table is None]
    if in_order and not as_text:
        return np.arange(in_order[0].values.shape[0])
    if keyed:
        return keyed[0].ids(as_text)
    if in_order:
        raise RawlsError(
            f"{found.graph_from} has text for ids, but the rows of {in_order[0].path.name} have no "
            "ids: give a table with the node id in its first column"
        )
    both = np.concatenate([found.source, found.target])
    return pd.unique(both) if as_text else np.unique(both)


def _named_in(sides: list[Side]) -> str:
    side = next((side for side in sides if side.table is None), sides[0] if sides else None)
    return "" if side is None else side.path.name


def _positions(order: Array, ids: Array, row: Any, where: str) -> Array:
    """The number of each node, or an error that names the first unknown id and its row."""
    if is_range(order):
        positions = np.where((ids >= 0) & (ids < len(order)), ids, -1)
    else:
        positions = pd.Index(order).get_indexer(pd.Index(ids))
    if len(positions) and positions.min() < 0:
        first = int((positions < 0).argmax())
        about = (
            f"out of range: {where} numbers its nodes from 0 to {len(order) - 1}"
            if is_range(order)
            else f"not in {where}"
        )
        raise RawlsError(f"{row(first)}: node {ids[first]} is {about}")
    return positions
