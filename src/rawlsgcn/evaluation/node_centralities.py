"""Node centralities to group by: degree, in-degree, PageRank, core number; or a column given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch_geometric.data import Data

from .._core.errors import RawlsError

BUILT_IN = ("degree", "in-degree", "pagerank", "core")
COUNTS = ("degree", "in-degree", "core")
"""The graph's own counts, of which there are never many: n different degrees need n²/2 edges."""
MOST_VALUES = 2000
"""A user's column of more different whole numbers is only binned, as fractions are: every value is
a group of the bootstrap, whose memory grows with their number."""


@dataclass(frozen=True)
class NodeColumn:
    """A number or a text of every node of the graph, (nodes,), by which nodes are grouped."""

    name: str
    values: npt.NDArray[Any]

    @property
    def ordered(self) -> bool:
        """Whether the values are numbers."""
        return self.values.dtype.kind in "biuf"

    @property
    def single(self) -> bool:
        """Whether single values (degrees, cores) are the groups of the bias, and not bins."""
        if not self.ordered or not (self.values == np.floor(self.values)).all():
            return False
        return self.name in COUNTS or len(np.unique(self.values)) <= MOST_VALUES


def column_of(graph: Data, by: Any) -> NodeColumn:
    """Make the column that nodes are grouped by.

    ``by`` is a name of ``BUILT_IN``, one value for each node, or a pair (name, such values). A
    user's column with a built-in name gets "(yours)" after it.
    """
    if isinstance(by, str):
        if by not in BUILT_IN:
            raise RawlsError(
                f"unknown column '{by}', and no file: give {', '.join(BUILT_IN)} or a file of "
                "node ids and values"
            )
        return NodeColumn(by, _BUILDERS[by](graph))
    named = isinstance(by, tuple | list) and len(by) == 2 and isinstance(by[0], str)
    name, values = by if named else ("column", by)
    try:
        values = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.ndim == 0:
        raise RawlsError(
            f"by must be one of {', '.join(BUILT_IN)}, a file of node ids and values, an array of "
            f"one value for each node or a pair (name, array), not {type(by).__name__}"
        )
    if values.shape != (graph.num_nodes,):
        raise RawlsError(
            f"the column '{name}' has the shape {tuple(values.shape)}, but the graph has "
            f"{graph.num_nodes} nodes: give one value for each"
        )
    name = str(name)
    if name in BUILT_IN:
        name = f"{name} (yours)"
    if values.dtype.kind in "biuf":
        return NodeColumn(name, values)
    # As objects: numpy's own texts would all be as long as the longest of them.
    texts = pd.Series(values, dtype=object)
    return NodeColumn(name, texts.astype(str).where(texts.notna(), "").to_numpy(dtype=object))


def check_complete(column: NodeColumn, chosen: npt.NDArray[np.int64], ids: Any) -> None:
    """Raise an error for an evaluated node that has no value in the column."""
    values = column.values[chosen]
    missing = ~np.isfinite(values) if values.dtype.kind == "f" else values == ""
    if missing.any():
        node = int(chosen[int(missing.argmax())])
        raise RawlsError(
            f"the column '{column.name}' has no value for node {node if ids is None else ids[node]}"
            f" and {int(missing.sum()) - 1:,} other evaluated nodes: fill them in, or remove "
            "these nodes from the predictions"
        )


def degrees(graph: Data) -> npt.NDArray[np.int64]:
    """Count the neighbors of every node; a graph without its edges has them as ``degree``."""
    known = graph.get("degree")
    if known is not None and not graph.edge_index.shape[1]:
        return np.asarray(known, dtype=np.int64)
    counted = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    values: npt.NDArray[np.int64] = counted.numpy()
    return values


def in_degrees(graph: Data) -> npt.NDArray[np.int64]:
    """Count the edges that arrive at every node, if the graph was read with its directions."""
    counts = graph.get("in_degree")
    if counts is None:
        raise RawlsError(
            "every edge of this graph goes both ways, so its directions are not known: "
            "audit the directed file with --graph, or give a column: --by FILE (by=(name, values))"
        )
    return np.asarray(counts, dtype=np.int64)


def pagerank(graph: Data) -> npt.NDArray[np.float64]:
    """Compute PageRank, r = (1 - d)/n + d P^T r, by power iteration to 1e-12 in the largest entry.

    The rank of isolated nodes is spread evenly over all nodes.
    """
    import scipy.sparse as sp

    damping = 0.85
    nodes, degree = int(graph.num_nodes), degrees(graph)
    row, column = graph.edge_index.numpy()
    share = np.divide(1.0, degree, out=np.zeros(nodes), where=degree > 0)
    onward = sp.csr_matrix((share[row], (column, row)), shape=(nodes, nodes))
    rank = np.full(nodes, 1 / nodes)
    for _ in range(200):
        lost = rank[degree == 0].sum()
        before, rank = rank, (1 - damping) / nodes + damping * (onward @ rank + lost / nodes)
        if np.abs(rank - before).max() < 1e-12:
            break
    return rank


def cores(graph: Data) -> npt.NDArray[np.int64]:
    """Compute the core number: the largest k of a subgraph in which a node has k neighbors.

    By peeling: nodes of at most k neighbors are removed until none is left, before k rises.
    """
    import scipy.sparse as sp

    nodes = int(graph.num_nodes)
    row, column = graph.edge_index.numpy()
    matrix = sp.csr_matrix((np.ones(len(row), np.int64), (row, column)), shape=(nodes, nodes))
    degree, core = degrees(graph).copy(), np.zeros(nodes, np.int64)
    remaining, k = np.ones(nodes, bool), 0
    while remaining.any():
        k = max(k, int(degree[remaining].min()))
        removed = np.flatnonzero(remaining & (degree <= k))
        core[removed] = k
        remaining[removed] = False
        degree -= np.asarray(matrix[:, removed].sum(1)).ravel()
    return core


_BUILDERS: dict[str, Callable[[Data], npt.NDArray[Any]]] = {
    "degree": degrees,
    "in-degree": in_degrees,
    "pagerank": pagerank,
    "core": cores,
}
