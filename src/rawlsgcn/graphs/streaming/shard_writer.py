"""Write a folder of shards piece by piece: sorted arcs, rows of features, labels and the split."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..._core.progress import ProgressCallback, no_progress
from ..._core.row_files import write_parts
from ..shard_files import array_path, save_node_ids
from ..shard_folder import shard_cuts, write_manifest
from .merged_arcs import SortedArcs
from .shard_fingerprint import shard_fingerprint

Array = NDArray[Any]
#: The entries that are copied at a time.
_BLOCK = 1 << 22


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
                if hasattr(os, "posix_fallocate"):  # where a mapped file that the disk has no
                    os.posix_fallocate(file.fileno(), begin, size)  # room for ends the process

    def add(self, nodes: Array, block: NDArray[np.float32]) -> None:
        """Write the rows of some nodes, at once where their numbers are consecutive."""
        if len(nodes) == 0:
            return
        first = int(nodes[0])
        if np.array_equal(nodes, np.arange(first, first + len(nodes))):
            self.write(first, block)
        else:
            self._scatter(nodes, block)

    def write(self, first: int, block: NDArray[np.float32]) -> None:
        """Write consecutive rows, of which the first is node ``first``."""
        self._count(slice(first, first + len(block)), block)
        for shard, low, high in self._shards(first, first + len(block)):
            with self._path(shard).open("r+b") as file:
                npy.read_magic(file)
                npy.read_array_header_1_0(file)
                file.seek(4 * self.num_features * (low - self._cuts[shard]), 1)
                block[low - first : high - first].tofile(file)

    def _scatter(self, nodes: Array, block: NDArray[np.float32]) -> None:
        """Write rows of any nodes."""
        self._count(nodes, block)
        order = np.argsort(nodes)
        nodes = nodes[order]
        for shard, low, high in self._shards(int(nodes[0]), int(nodes[-1]) + 1):
            part = slice(*np.searchsorted(nodes, (low, high)).tolist())
            # A mapping of its own for each block: pages that were written do not stay resident.
            mapped = npy.open_memmap(self._path(shard), mode="r+")
            mapped[nodes[part] - self._cuts[shard]] = block[order[part]]
            del mapped

    def read(self, rows: int) -> Iterator[NDArray[np.float32]]:
        """Yield the rows in order, so many at a time."""
        for shard, (first, last) in enumerate(pairwise(self._cuts)):
            with self._path(shard).open("rb") as file:
                npy.read_magic(file)
                npy.read_array_header_1_0(file)
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
        self.negative = self.negative or bool(block.min() < 0)


class ShardWriter:
    """Write the shards of one graph into a folder, of which the arcs are there already.

    Args:
        folder: The folder, which the caller puts in its place when all of it is there.
        row_start: Where the arcs of each row begin, of the length nodes + 1.
        count: The number of shards.
        weighted: Whether the arcs have weights.
    """

    def __init__(self, folder: Path, row_start: Array, count: int, *, weighted: bool) -> None:
        self._folder, self._row_start, self._weighted = folder, row_start, weighted
        self.cuts = shard_cuts(row_start, count)

    @classmethod
    def cut(cls, folder: Path, count: int, arcs: SortedArcs) -> ShardWriter:
        """Cut sorted arcs into shards; their files are removed."""
        start = arcs.row_start
        writer = cls(folder, start, count, weighted=arcs.weight is not None)
        for shard, (first, last) in enumerate(pairwise(writer.cuts)):
            np.save(writer._path(shard, "row_start"), start[first : last + 1] - start[first])
        files: list[tuple[str, Path | None, type[np.generic]]] = [
            ("column", arcs.column, np.int32),
            ("weight", arcs.weight, np.float32),
        ]
        for name, path, kind in files:
            if path is None:
                continue
            with path.open("rb") as file:
                for shard, (first, last) in enumerate(pairwise(writer.cuts)):
                    writer._copy(file, int(start[last] - start[first]), shard, name, kind)
            path.unlink()
        return writer

    @classmethod
    def reopen(cls, folder: Path, count: int, *, weighted: bool) -> ShardWriter:
        """Go on with a folder that has the arcs of all shards."""
        parts = [np.load(array_path(folder, shard, "row_start")) for shard in range(count)]
        lengths = np.concatenate([[0], *(np.diff(part) for part in parts)])
        return cls(folder, np.cumsum(lengths), count, weighted=weighted)

    def write_nodes(self, y: Array | None, split: Array, node_ids: Array | None = None) -> None:
        """Write the labels (int64) if any, the split (uint8, see :mod:`..shard_files`), the ids."""
        for shard, (first, last) in enumerate(pairwise(self.cuts)):
            if y is not None:
                np.save(self._path(shard, "y"), y[first:last])
            np.save(self._path(shard, "split"), split[first:last])
            save_node_ids(self._folder, shard, None if node_ids is None else node_ids[first:last])
        self._y, self._split = y, split

    def features(self, columns: int) -> FeatureFiles:
        """Return the files of the features, which may be there or not."""
        return FeatureFiles(self.cuts, columns, lambda shard: self._path(shard, "x"))

    def finish(
        self,
        name: str,
        features: FeatureFiles,
        progress: ProgressCallback = no_progress,
        *,
        class_names: list[str] | None = None,
    ) -> None:
        """Write the manifest, with the fingerprint of everything that was written."""
        write_manifest(
            self._folder,
            name=name,
            graph=shard_fingerprint(
                self._folder,
                self.cuts,
                self._row_start,
                weighted=self._weighted,
                features=features,
                y=self._y,
                split=self._split,
                progress=progress,
            ),
            nodes=self.cuts[-1],
            arcs=int(self._row_start[-1]),
            classes=0 if self._y is None else int(self._y.max()) + 1,
            negative_features=features.negative,
            cuts=self.cuts,
            class_names=class_names,
        )

    def _path(self, shard: int, name: str) -> Path:
        return array_path(self._folder, shard, name)

    def _copy(
        self, file: IO[bytes], length: int, shard: int, name: str, kind: type[np.generic]
    ) -> None:
        with self._path(shard, name).open("wb") as into:
            blocks = range(0, length, _BLOCK)
            parts = (np.fromfile(file, kind, min(_BLOCK, length - first)) for first in blocks)
            write_parts(into, (length,), kind, parts)
