"""Which nodes the files of a graph name, in which order, and the rows of the files in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..raw_graph import RawGraph
from .node_numbers import NodeNumbers
from .node_tables import NodeTable

Array = NDArray[Any]


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


def attach_all(raw: RawGraph, tables: list[NodeTable], numbers: NodeNumbers) -> None:
    """Bring tables keyed by node id into the order of the nodes; refuse ids that do not match."""
    for each in tables:
        others = [raw.graph_from, *(other.path.name for other in tables if other is not each)]
        each.attach(raw, numbers, others)
