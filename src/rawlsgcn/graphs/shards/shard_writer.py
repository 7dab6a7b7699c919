"""Write a folder of shards piece by piece: sorted arcs, rows of features, labels and the split."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._core.atomic_folders import atomic_directory
from ..._core.errors import RawlsError
from ..._core.progress import ProgressCallback, no_progress
from ..._core.row_files import write_parts
from ..._core.text import plural
from ..graph_fingerprint import fingerprint
from ..node_features import dense_rows
from ..splits import MASKS
from .feature_files import FeatureFiles
from .shard_boundaries import boundaries
from .shard_files import array_path, save_node_ids, whole_row_start
from .shard_fingerprint import shard_fingerprint
from .shards import Shards, outdated, require_own, write_manifest

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = NDArray[Any]
#: Returns the columns or weights of the arcs from a first one up to a last one.
ArcReader = Callable[[int, int], Array]
#: The arcs, and the rows of features, that are written at a time.
_ARCS, _ROWS = 1 << 22, 1 << 14


def require_count(count: int, nodes: int) -> None:
    """Raise an error if a graph of so many nodes cannot be cut into ``count`` shards."""
    if not 1 <= count <= nodes:
        raise RawlsError(
            f"a graph of {plural(nodes, 'node')} cannot be cut into {plural(count, 'shard')}, of "
            f"which each has a node or more: give a --count of 1 to {nodes:,}"
        )


def write_shards(graph: Data, count: int, folder: str | Path) -> Shards:
    """Cut a validated graph into ranges of rows of about equal size on disk.

    Args:
        graph: A graph from ``load``, ``read``, ``synthetic`` or ``check``.
        count: The number of shards.
        folder: Where to write them. Shards that are there already are replaced.

    Returns:
        The shards.

    Raises:
        RawlsError: If the folder holds anything else, or there are more shards than nodes.
    """
    require_own(folder)
    nodes = int(graph.num_nodes)
    require_count(count, nodes)
    row, column = graph.edge_index.numpy()
    row_start = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=nodes), out=row_start[1:])
    x, weight = graph.get("x"), graph.get("edge_weight")
    with atomic_directory(folder, outdated) as temporary:
        writer = ShardWriter(temporary, row_start, count, weighted=weight is not None)
        writer.write_arcs(
            lambda first, last: column[first:last],
            None if weight is None else lambda first, last: weight[first:last].numpy(),
        )
        writer.write_nodes(graph)
        features = writer.features(0 if x is None else x.shape[1])
        if x is not None:
            features.create()
            for first in range(0, nodes, _ROWS):
                block = dense_rows(x, first, min(first + _ROWS, nodes))
                rows = np.arange(first, first + len(block))
                features.add(rows, block.astype(np.float32, copy=False))
        writer.finish(features, fingerprint(graph))
    return Shards(folder)


class ShardWriter:
    """Write the shards of one graph into a folder, which the caller puts in its place at the end.

    Args:
        folder: The folder.
        row_start: Where the arcs of each row begin, of the length nodes + 1.
        count: The number of shards.
        weighted: Whether the arcs have weights.
    """

    def __init__(self, folder: Path, row_start: Array, count: int, *, weighted: bool) -> None:
        self._folder, self._row_start, self._weighted = folder, row_start, weighted
        self.cuts = boundaries(row_start, count)

    @classmethod
    def reopen(cls, folder: Path, count: int, *, weighted: bool) -> ShardWriter:
        """Go on with a folder that has the arcs of all shards."""
        parts = [np.load(array_path(folder, shard, "row_start")) for shard in range(count)]
        return cls(folder, whole_row_start(parts), count, weighted=weighted)

    def write_arcs(self, column: ArcReader, weight: ArcReader | None) -> None:
        """Write the rows of all shards; columns and weights are read some at a time."""
        small = np.int32 if self.cuts[-1] < 2**31 else np.int64
        readers = [("column", small, column)]
        if weight is not None:
            readers.append(("weight", weight(0, 0).dtype.type, weight))
        for shard, (first, last) in enumerate(pairwise(self.cuts)):
            start = self._row_start[first : last + 1]
            np.save(self._path(shard, "row_start"), start - start[0])
            begin, end = int(start[0]), int(start[-1])
            for name, kind, read in readers:
                parts = (read(at, min(at + _ARCS, end)) for at in range(begin, end, _ARCS))
                with self._path(shard, name).open("wb") as into:
                    write_parts(into, (end - begin,), kind, parts)

    def write_nodes(self, nodes: Data) -> None:
        """Write the labels, masks and ids that a graph has; it also has the names for the end."""
        self._nodes, y, ids = nodes, nodes.get("y"), nodes.get("node_ids")
        self._y = None if y is None else y.numpy()
        self._split = np.zeros(self.cuts[-1], np.uint8)
        for number, name in enumerate(MASKS, start=1):
            if nodes.get(name) is not None:
                self._split[nodes[name].numpy()] = number
        # Texts stay objects: numpy's own would all be as long as the longest of them.
        ids = np.array(ids, dtype=object) if isinstance(ids, list) else ids
        for shard, (first, last) in enumerate(pairwise(self.cuts)):
            if self._y is not None:
                np.save(self._path(shard, "y"), self._y[first:last])
            np.save(self._path(shard, "split"), self._split[first:last])
            if ids is not None:
                save_node_ids(self._folder, shard, ids[first:last])

    def features(self, columns: int) -> FeatureFiles:
        """Return the files of the features, which may be there or not."""
        return FeatureFiles(self.cuts, columns, lambda shard: self._path(shard, "x"))

    def finish(
        self,
        features: FeatureFiles,
        graph: str | None = None,
        progress: ProgressCallback = no_progress,
    ) -> None:
        """Write the manifest; the fingerprint of the ``graph`` is that of the files by default."""
        if graph is None:
            graph = shard_fingerprint(
                self._folder,
                self._row_start,
                len(self.cuts) - 1,
                weighted=self._weighted,
                features=features,
                y=self._y,
                split=self._split,
                progress=progress,
            )
        write_manifest(
            self._folder,
            name=str(self._nodes.get("name") or "graph"),
            graph=graph,
            nodes=self.cuts[-1],
            arcs=int(self._row_start[-1]),
            classes=0 if self._y is None else int(self._y.max()) + 1,
            negative_features=features.negative,
            cuts=self.cuts,
            class_names=self._nodes.get("class_names"),
        )

    def _path(self, shard: int, name: str) -> Path:
        return array_path(self._folder, shard, name)
