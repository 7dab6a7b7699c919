"""The graph as a sampler reads it: the arcs of each row, in memory or in shards on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._core.argument_checks import require_edges, require_nodes

if TYPE_CHECKING:
    from ..graphs.shards.shards import Shard

Array = NDArray[Any]

#: Arcs processed at once where a whole matrix is read.
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The arcs of a graph, sorted by target, so that row v holds the arcs into v.

    ``columns`` and ``weights`` are lists of arrays that follow each other: one for a graph in
    memory, one for each shard of a graph on disk, of which only the pages that are read come into
    memory.

    Attributes:
        row_start: (nodes + 1,) the first arc of each row.
        columns: The source u of each arc.
        weights: The weight a_vu of each arc; None if all are one.
        order: The position of each arc in the edge index it was read from; None if it is the same.
    """

    row_start: Array
    columns: Sequence[Array]
    weights: Sequence[Array] | None = None
    order: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.row_start) - 1

    @property
    def degree(self) -> Array:
        """d_v, the number of arcs into each node, without self-loops."""
        return np.diff(self.row_start)

    def sources(self, arcs: Array) -> Array:
        """Return the sources of some arcs.

        Args:
            arcs: Numbers of arcs.
        """
        return take_concatenated(self.columns, arcs)

    def arc_weights(self, arcs: Array) -> Array | None:
        """Return the weights of some arcs; None if all are one.

        Args:
            arcs: Numbers of arcs.
        """
        return None if self.weights is None else take_concatenated(self.weights, arcs)

    def row_blocks(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows with few enough arcs to be processed at once.

        Args:
            first: The first row.
            last: The row after the last one.
        """
        while first < last:
            reach = self.row_start[first] + _BLOCK
            stop = int(np.searchsorted(self.row_start, reach, side="right")) - 1
            stop = min(max(stop, first + 1), last)
            yield first, stop
            first = stop

    def row_sums(self, vector: Array | None = None) -> Array:
        """Compute (A + I) v in float64.

        Args:
            vector: v; all ones by default, which gives the row sums of A + I.
        """
        sums = np.ones(self.num_nodes) if vector is None else vector.astype(np.float64)
        if vector is None and self.weights is None:
            return sums + self.degree
        right = sums.copy()
        for first, last in self.row_blocks(0, self.num_nodes):
            start = self.row_start[first : last + 1]
            arcs = np.arange(start[0], start[-1])
            values = right[self.sources(arcs)]
            weights = self.arc_weights(arcs)
            if weights is not None:
                values = values * weights
            row = np.repeat(np.arange(last - first), np.diff(start))
            sums[first:last] += np.bincount(row, weights=values, minlength=last - first)
        return sums

    @classmethod
    def of(cls, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
        """Read an edge index of torch_geometric, in which (u, v) is an arc from u into v.

        Args:
            edge_index: Edge indices (2, E).
            edge_weight: Weights (E,) of the edges; None if all are one.
            num_nodes: Number of nodes.

        Raises:
            RawlsError: If the edges are not such tensors or name nodes outside the graph.
        """
        require_edges(edge_index, edge_weight, "a sampler")
        require_nodes(edge_index, num_nodes, "a sampler")
        source, target = edge_index.cpu()
        order = None
        if not bool((target[1:] >= target[:-1]).all()):
            target, order = torch.sort(target, stable=True)
            source = source[order]
            edge_weight = None if edge_weight is None else edge_weight[order]
        return cls._of_rows(target, source, edge_weight, num_nodes, order)

    @classmethod
    def of_symmetric(
        cls, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int
    ) -> Adjacency:
        """Read the edge index of a validated graph, symmetric and sorted by row.

        Args:
            edge_index: Edge indices (2, E).
            edge_weight: Weights (E,) of the edges; None if all are one.
            num_nodes: Number of nodes.
        """
        row, column = edge_index.cpu()
        return cls._of_rows(row, column, edge_weight, num_nodes)

    @classmethod
    def _of_rows(
        cls,
        row: Tensor,
        column: Tensor,
        weight: Tensor | None,
        num_nodes: int,
        order: Tensor | None = None,
    ) -> Adjacency:
        row_start = np.zeros(num_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(row.numpy(), minlength=num_nodes), out=row_start[1:])
        small = np.int32 if num_nodes < 2**31 else np.int64
        weights = None if weight is None else [weight.detach().cpu().numpy()]
        return cls(row_start, [column.numpy().astype(small)], weights, order)

    @classmethod
    def of_shards(cls, parts: Sequence[Shard]) -> Adjacency:
        """Map the arcs of all shards from disk; only the n + 1 row starts are held in memory.

        Args:
            parts: The shards, in the order of their rows.
        """
        starts = [np.zeros(1, dtype=np.int64)]
        for part in parts:
            starts.append(part.row_start[1:] + starts[-1][-1])
        weights = [part.weight for part in parts if part.weight is not None]
        return cls(np.concatenate(starts), [part.column for part in parts], weights or None)


def take_concatenated(pieces: Sequence[Array], places: Array) -> Array:
    """Return the entries at ``places`` of the concatenation of ``pieces``, without building it."""
    if len(pieces) == 1:
        return np.asarray(pieces[0])[places]
    ends = np.cumsum([len(piece) for piece in pieces])
    home = np.searchsorted(ends, places, side="right")
    taken = np.empty((len(places), *pieces[0].shape[1:]), dtype=pieces[0].dtype)
    for number, piece in enumerate(pieces):
        own = home == number
        taken[own] = piece[places[own] - (ends[number] - len(piece))]
    return taken
