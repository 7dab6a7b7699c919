"""The features of shards in .npy files, written and read a block of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..._core.row_files import npy_blocks, read_npy_header, write_parts

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
        self.nonzero[nodes] = np.count_nonzero(block, axis=1)
        self.negative = self.negative or bool((block < 0).any())
        if not len(nodes):
            return
        first = int(nodes.min())
        consecutive = np.array_equal(nodes, np.arange(first, first + len(nodes)))
        order = np.argsort(nodes)
        nodes = nodes[order]
        for shard, (begin, end) in enumerate(pairwise(self._cuts)):
            low, high = np.searchsorted(nodes, (begin, end)).tolist()
            if low == high:
                continue
            if consecutive:
                with self._path(shard).open("r+b") as file:
                    read_npy_header(file)
                    file.seek(4 * self.num_features * (int(nodes[low]) - begin), 1)
                    block[low:high].tofile(file)
            else:
                # A mapping of its own for each block: pages that were written do not stay resident.
                mapped = npy.open_memmap(self._path(shard), mode="r+")
                mapped[nodes[low:high] - begin] = block[order[low:high]]
                del mapped

    def read(self, rows: int) -> Iterator[NDArray[np.float32]]:
        """Yield the rows in order, so many at a time."""
        return chain.from_iterable(
            npy_blocks(self._path(shard), rows) for shard in range(len(self._cuts) - 1)
        )
