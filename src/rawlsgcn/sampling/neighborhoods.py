"""Neighborhoods drawn hop by hop around some seeds, their nodes numbered as they are met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import RawlsError
from .adjacency import Adjacency
from .random_draws import derive_key, draw_offsets

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Hop:
    """The arcs drawn in one hop: row ``first`` + i has the next ``drawn[i]`` of them.

    ``source`` numbers nodes as the sample does; ``arc`` as the graph does.
    """

    first: int
    drawn: Array
    source: Array
    arc: Array

    @property
    def target(self) -> Array:
        rows = np.arange(self.first, self.first + len(self.drawn), dtype=np.int32)
        return np.repeat(rows, self.drawn)


@dataclass(frozen=True, eq=False)
class Sample:
    """The nodes met, seeds first, how many were new in each hop (seeds included), and the hops."""

    nodes: Array
    new: list[int]
    hops: list[Hop]


class Neighborhoods:
    """Draws from one graph; holds one number of 32 bits for every node of it.

    These numbers say where in the sample a node is, −1 for not at all. Only what a sample has
    touched is set back after it, so that a draw costs nothing for the nodes it does not meet.
    """

    def __init__(self, adjacency: Adjacency) -> None:
        self.adjacency = adjacency
        self._place = np.full(adjacency.num_nodes, -1, dtype=np.int32)

    def sample(
        self, seeds: Array, num_neighbors: Sequence[int], key: int, *, anew: bool = False
    ) -> Sample:
        """Draw min(k, d) arcs into every node of the last hop, for each k (−1: all) in turn.

        Every row is drawn once, in the hop after the one that met its node; with ``anew`` every
        hop draws the rows of all nodes met so far again, independently of the hops before.
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
                first = 0 if anew else len(nodes)
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
        """Number the different ones among ``nodes``, from ``count`` on, and return them.

        Each is written its place in the list; where a node stands twice the last one stays, and
        that one speaks for it.
        """
        places = np.arange(len(nodes), dtype=np.int32)
        self._place[nodes] = places
        met: Array = nodes[self._place[nodes] == places]
        self._place[met] = np.arange(count, count + len(met), dtype=np.int32)
        return met


def parse_num_neighbors(num_neighbors: Any) -> tuple[int, ...]:
    """The neighbours to draw in each hop as numbers: from a list, or from text as '10,10'."""
    wrong = RawlsError(
        f"a fan-out is one whole number a layer, at least 1, or -1 for all neighbours, as in "
        f"10,10; not {num_neighbors!r}"
    )
    try:
        if isinstance(num_neighbors, str):
            numbers = tuple(int(each) for each in num_neighbors.split(","))
        else:
            numbers = tuple(index(each) for each in num_neighbors)
    except (TypeError, ValueError):
        raise wrong from None
    if not numbers or any(k == 0 or k < -1 for k in numbers):
        raise wrong
    return numbers
