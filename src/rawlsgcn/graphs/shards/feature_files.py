"""The features of shards in .npy files, written and read a block of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..._core.row_files import read_npy_header, write_parts

Array = NDArray[Any]


class FeatureFiles:
    """The features of all shards, float32 and row-major, whose rows come in blocks.

    Attributes:
        num_features: The number of columns.
        nonzero: How many features of each node are not zero.
        negative: Whether any is negative.
    """

    def __init__(self, cuts: list[int], columns: int, path: Callable[[int], Path]) -> None:
        self._cuts, self._path = cuts, path
        self.num_features = columns
        self.nonzero = np.zeros(cuts[-1], np.int32)
        self.negative = False

    def create(self) -> None:
        """Create the files, with zeros in them; a disk that is too small for them is an error."""
        for shard, (first, last) in enumerate(pairwise(self._cuts)):
            with self._path(shard).open("wb") as file:
                write_parts(file, (last - first, self.num_features), np.float32)
                begin, size = file.tell(), 4 * self.num_features * (last - first)
                file.truncate(begin + size)
                # Writing to a mapped file ends the process where the disk has no room for it.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), begin, size)

    def add(self, nodes: Array, block: NDArray[np.float32]) -> None:
        """Write the rows of some nodes, at once where their numbers are consecutive."""
        if len(nodes) == 0:
            return
        first = int(nodes[0])
        if np.array_equal(nodes, np.arange(first, first + len(nodes))):
            self.write(first, block)
            return
        self._count(nodes, block)
        order = np.argsort(nodes)
        nodes = nodes[order]
        for shard, low, high in self._shards(int(nodes[0]), int(nodes[-1]) + 1):
            part = slice(*np.searchsorted(nodes, (low, high)).tolist())
            # A mapping of its own for each block: pages that were written do not stay resident.
            mapped = npy.open_memmap(self._path(shard), mode="r+")
            mapped[nodes[part] - self._cuts[shard]] = block[order[part]]
            del mapped

    def write(self, first: int, block: NDArray[np.float32]) -> None:
        """Write consecutive rows, of which the first is node ``first``."""
        self._count(slice(first, first + len(block)), block)
        for shard, low, high in self._shards(first, first + len(block)):
            with self._path(shard).open("r+b") as file:
                read_npy_header(file)
                file.seek(4 * self.num_features * (low - self._cuts[shard]), 1)
                block[low - first : high - first].tofile(file)

    def read(self, rows: int) -> Iterator[NDArray[np.float32]]:
        """Yield the rows in order, so many at a time."""
        for shard, (first, last) in enumerate(pairwise(self._cuts)):
            with self._path(shard).open("rb") as file:
                read_npy_header(file)
                for row in range(first, last, rows):
                    count = min(rows, last - row)
                    block = np.fromfile(file, np.float32, count * self.num_features)
                    yield block.reshape(count, self.num_features)

    def _shards(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The shards that have rows ``first`` to ``last``, and which of these each has."""
        for shard, (begin, end) in enumerate(pairwise(self._cuts)):
            low, high = max(first, begin), min(last, end)
            if low < high:
                yield shard, low, high

    def _count(self, nodes: Any, block: Array) -> None:
        self.nonzero[nodes] = np.count_nonzero(block, axis=1)
        self.negative = self.negative or bool((block < 0).any())
