"""Which nodes the files of a graph name, in which order, and the numbers of their ids in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._core.errors import RawlsError

if TYPE_CHECKING:
    from .node_tables import NodeTable

Array = NDArray[Any]
#: A table of all ids from the lowest to the highest has at most so many entries for each node.
_GAPS = 4


class TextIdsError(RawlsError):
    """Ids that are texts in one file, where those of the files before it are whole numbers."""


class NodeNumbers:
    """Find the places of ids in the order of the nodes.

    Args:
        order: The ids of the nodes, whole numbers or (as objects) texts, each once.
    """

    def __init__(self, order: Array) -> None:
        self.order = order
        self.is_text = order.dtype == object
        self.is_range = not self.is_text and bool(np.array_equal(order, np.arange(len(order))))
        self._table: Array | None = None
        self._index: Any = None
        if self.is_range:
            return
        if not self.is_text and len(order):
            self._low, high = int(order.min()), int(order.max())
            if high - self._low <= _GAPS * len(order):
                self._table = np.full(high - self._low + 1, -1, np.int64)
                self._table[order - self._low] = np.arange(len(order))
                return
        self._index = pd.Index(order, dtype=order.dtype)

    def __len__(self) -> int:
        return len(self.order)

    def find(self, ids: Array) -> NDArray[np.int64]:
        """Return the number of each node, -1 for those that there are not."""
        if self.is_range:
            return np.where((ids >= 0) & (ids < len(self.order)), ids, -1)
        if self._table is None:
            found = self._index.get_indexer(pd.Index(ids, dtype=self.order.dtype))
            return np.asarray(found, np.int64)
        inside = (ids >= self._low) & (ids < self._low + len(self._table))
        if inside.all():
            return np.asarray(self._table[ids - self._low])
        return np.where(inside, self._table[np.where(inside, ids - self._low, 0)], -1)

    def unknown(self, where: str) -> str:
        """Say that an id is none of them, for an error message."""
        if self.is_range:
            return f"out of range: {where} numbers its nodes from 0 to {len(self) - 1}"
        return f"not in {where}"


def number_nodes(
    tables: Sequence[NodeTable], as_text: bool, graph: str, edge_ids: Callable[[bool], Array]
) -> NodeNumbers:
    """Number the nodes that the labels, then the features, then the edges name.

    They are 0 to n - 1 where a table is in their order and the ids are whole numbers; else the ids
    of the first table in its order; else those of the edges (numbers sorted, texts as they first
    appear). Labels need not list every node: those that only the features, or only the edges, name
    come after them. ``edge_ids`` is called only if it is needed, ``graph`` is for error messages.
    """
    keyed = [each for each in tables if each.table is not None]
    in_order = [each for each in tables if each.table is None]
    if as_text:
        _refuse_unknown_header(keyed, edge_ids)
    if in_order and not as_text:
        return NodeNumbers(np.arange(in_order[0].num_rows))
    if keyed:
        order = keyed[0].ids(as_text)
        # Where as many are listed as there are rows in the order of the nodes, all of them are.
        if not (keyed[0].complete or (in_order and in_order[0].num_rows == len(order))):
            others = keyed[1].ids(as_text) if len(keyed) > 1 else edge_ids(as_text)
            order = _with_unlisted(order, others)
        return NodeNumbers(order)
    if in_order:
        raise RawlsError(
            f"{graph} has text for ids, but the rows of {in_order[0].path.name} have none: "
            "give a table with the node id in its first column"
        )
    return NodeNumbers(edge_ids(as_text))


def _refuse_unknown_header(keyed: Sequence[NodeTable], edge_ids: Callable[[bool], Array]) -> None:
    """Refuse a first row whose id has no edge and, if it is one of features, no label."""
    for place, each in enumerate(keyed):
        first, error = each.first_row
        if not first or (each.complete and not place):
            continue
        labeled = place > 0 and first in keyed[0].ids(True)
        if not labeled and first not in edge_ids(True):
            raise RawlsError(error)


def _with_unlisted(listed: Array, ids: Array) -> Array:
    """The ids that labels list, and after them those of ``ids`` that they do not.

    Where the labels also list ids that are not among ``ids``, the two may not belong together (one
    may number from 0 and the other from 1), and nothing is added: an error follows.
    """
    if (NodeNumbers(ids).find(listed) < 0).any():
        return listed
    return np.concatenate([listed, ids[NodeNumbers(listed).find(ids) < 0]])


def file_of_nodes(tables: Sequence[NodeTable], as_text: bool) -> str:
    """The name of the file that the order of the nodes is from, for error messages."""
    of_kind = (each for each in tables if (each.table is not None) == as_text)
    return next(of_kind, tables[0]).path.name


def no_row(path: Path, order: Array, missing: Array) -> RawlsError:
    """The error for a file without rows for the nodes ``missing``, numbers of ``order``."""
    named = ", ".join(str(order[node]) for node in missing[:3])
    more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
    return RawlsError(f"{path.name} has no row for node {named}{more}: every node needs one")
