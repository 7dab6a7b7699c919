"""Neighborhoods sampled hop by hop around some seeds, nodes numbered in order of discovery.

Neighbors are drawn without replacement, for all rows at once, as a pure function of a key: the
random numbers of a node's row come from a hash of (key, node, place), not from a stream. So a
row's draw is the same whatever else is in the batch, in whichever process it is made, and however
often it is repeated: a run on eight processes draws what a run on one would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import RawlsError
from .adjacency import Adjacency

Array = NDArray[Any]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Hop:
    """The arcs drawn in one hop: row ``first`` + i has the next ``drawn[i]`` of them.

    Rows and the ``source`` of each arc are positions in the sample's nodes, and ``arc`` is its
    number in the graph.
    """

    first: int
    drawn: Array
    source: Array
    arc: Array

    @property
    def target(self) -> Array:
        """The target of each arc, as a position in the sample's nodes."""
        rows = np.arange(self.first, self.first + len(self.drawn), dtype=np.int32)
        return np.repeat(rows, self.drawn)


@dataclass(frozen=True, eq=False)
class Sample:
    """The sampled nodes, how many of them were new in each hop, seeds first, and its arcs."""

    nodes: Array
    new: list[int]
    hops: list[Hop]


class Neighborhoods:
    """Samples neighborhoods from one graph.

    It holds the position in the sample of every node of the graph, −1 for none, in 32 bits. After a
    sample only the positions that it changed are reset, so that its cost does not depend on the
    size of the graph.

    Args:
        adjacency: The graph.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        self._place = np.full(adjacency.num_nodes, -1, dtype=np.int32)

    def sample(
        self, seeds: Array, num_neighbors: Sequence[int], key: int, *, redraw: bool = False
    ) -> Sample:
        """Draw min(k, d) arcs into every node of the previous hop, for each k of ``num_neighbors``.

        Args:
            seeds: The nodes to begin with, each once.
            num_neighbors: The number of neighbors k to draw in each hop; −1 for all.
            key: The result is a pure function of the graph, the seeds and this key.
            redraw: Draw the rows of all nodes of the sample again in every hop, independently of
                the hops before; by default a row is drawn once.

        Returns:
            The sampled neighborhood.
        """
        nodes, new, hops = seeds, [len(seeds)], []
        self._place[seeds] = np.arange(len(seeds))
        first = 0
        try:
            for number, k in enumerate(num_neighbors):
                rows = nodes[first:]
                arc, drawn = self._draw(rows, k, derive_key(key, number))
                source = self.adjacency.sources(arc)
                place = self._place[source]
                met = self._enter(source[place < 0], len(nodes))
                if len(met):
                    place = self._place[source]
                hops.append(Hop(first, drawn, place, arc))
                first = 0 if redraw else len(nodes)
                nodes = np.concatenate([nodes, met.astype(nodes.dtype)])
                new.append(len(met))
        finally:
            self._place[nodes] = -1
        return Sample(nodes, new, hops)

    def _draw(self, rows: Array, k: int, key: int) -> tuple[Array, Array]:
        start = self.adjacency.row_start[rows]
        degree = self.adjacency.row_start[rows + 1] - start
        if k < 0 or k >= degree.max(initial=0):
            before = np.cumsum(degree) - degree
            return np.repeat(start - before, degree) + np.arange(degree.sum()), degree
        offsets, drawn = draw_offsets(rows, degree, k, key)
        arcs = offsets + start[:, None]
        return arcs[np.arange(k) < drawn[:, None]], drawn

    def _enter(self, nodes: Array, count: int) -> Array:
        """Number the distinct nodes of ``nodes``, from ``count`` on, and return them."""
        places = np.arange(len(nodes), dtype=np.int32)
        self._place[nodes] = places  # of a node that appears twice the last one stays
        met: Array = nodes[self._place[nodes] == places]
        self._place[met] = np.arange(count, count + len(met), dtype=np.int32)
        return met


def parse_num_neighbors(num_neighbors: Any) -> tuple[int, ...]:
    """Parse the number of neighbors of each hop.

    Args:
        num_neighbors: A sequence of integers, or text such as ``"10,10"``.

    Returns:
        The numbers of neighbors, one for each hop.

    Raises:
        RawlsError: If a number is neither positive nor −1 (all neighbors), or there is none.

    Example:
        >>> from rawlsgcn.sampling import parse_num_neighbors
        >>> parse_num_neighbors("15,10")
        (15, 10)
    """
    try:
        if isinstance(num_neighbors, str):
            numbers = tuple(int(each) for each in num_neighbors.split(","))
        else:
            numbers = tuple(index(each) for each in num_neighbors)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or any(k == 0 or k < -1 for k in numbers):
        raise RawlsError(
            f"num_neighbors must have a whole number for each layer, at least 1 or -1 for all "
            f"neighbors, as in 10,10; not {num_neighbors!r}"
        )
    return numbers


def derive_key(*parts: int) -> int:
    """Return a 64-bit key of several numbers (seed, epoch, step, layer, …) and their order."""
    state = 0
    for part in parts:
        state = int(_hash(np.array([((state + 1) * _GOLDEN + part) % 2**64], dtype=np.uint64))[0])
    return state


def draw_offsets(nodes: Array, degree: Array, k: int, key: int) -> tuple[Array, Array]:
    """Draw for each node min(k, d) different numbers below its degree d, all sets equally likely.

    Returns the numbers, (nodes, k), and how many at the front of each row count, min(k, d). The
    rows are no longer than the largest degree.

    Floyd's algorithm (Bentley and Floyd 1987), one step for all rows at a time: for j from d − k
    to d − 1, draw t ≤ j; take t, or j itself where t is already there. A row with d ≤ k takes
    every number under d, in order.
    """
    k = min(k, int(degree.max(initial=0)))
    offsets = np.empty((k, len(nodes)), dtype=np.int32)
    first = np.maximum(degree.astype(np.int64) - k, 0).astype(np.int32)
    seen = np.empty(len(nodes), dtype=bool)
    same = np.empty(len(nodes), dtype=bool)
    row_key = _hash(nodes.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(key))
    for step in range(k):
        last = first + np.int32(step)
        bits = _hash(row_key + np.uint64(step * _GOLDEN % 2**64)) >> np.uint64(11)
        unit = bits * _TO_UNIT
        unit *= last + 1.0
        drawn = unit.astype(np.int32)
        seen[:] = False
        for earlier in offsets[:step]:
            np.equal(earlier, drawn, out=same)
            seen |= same
        np.copyto(drawn, last, where=seen)
        offsets[step] = drawn
    np.copyto(offsets, np.arange(k, dtype=np.int32)[:, None], where=degree <= k)
    return offsets.T, np.minimum(degree, k)


def _hash(state: Array) -> Array:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the input."""
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    mixed: Array = state ^ (state >> np.uint64(31))
    return mixed
