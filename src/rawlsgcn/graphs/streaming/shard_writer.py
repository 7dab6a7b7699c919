"""Write a folder of shards piece by piece: sorted arcs, rows of features, labels and the split."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._core.progress import ProgressCallback, no_progress
from ..._core.row_files import write_parts
from ..shards.shard_cuts import shard_cuts
from ..shards.shard_files import array_path, save_node_ids
from ..shards.shard_folder import write_manifest
from .feature_files import FeatureFiles
from .merged_arcs import SortedArcs
from .shard_fingerprint import shard_fingerprint

Array = NDArray[Any]
#: The entries that are copied at a time.
_BLOCK = 1 << 22


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
        """Write labels (int64) if any, the split (uint8; :mod:`..shards.shard_files`), the ids."""
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
