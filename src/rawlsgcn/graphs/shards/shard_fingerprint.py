"""The fingerprint of a graph in the files of its shards, equal to that of the graph in memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.progress import ProgressCallback, no_progress
from ..._core.row_files import npy_blocks
from ..._core.threads import ordered_map
from ..catalog import MASKS
from ..graph_fingerprint import BlockTensor, Hashed, fingerprint_text, tensor_hash
from ..node_features import SPARSE_BELOW
from .shard_files import array_path, whole_row_start

if TYPE_CHECKING:
    from .feature_files import FeatureFiles
    from .shards import Shards

Array = NDArray[Any]
#: Numbers that are hashed at a time.
_BLOCK = 1 << 20


def shard_fingerprint(
    folder: Path,
    row_start: Array,
    count: int,
    *,
    weighted: bool,
    features: FeatureFiles,
    y: Array | None,
    split: Array,
    progress: ProgressCallback = no_progress,
) -> str:
    """Return what :func:`..graph_fingerprint.fingerprint` returns for the graph in memory.

    The arcs and the features are read once in blocks, features of which under a tenth is non-zero
    twice; edges and features are hashed on a thread each.
    """
    nodes, arcs = len(row_start) - 1, int(row_start[-1])

    def edges() -> Hashed:
        yield BlockTensor(torch.int64, (2, arcs), _ends(folder, count, row_start))
        blocks = _blocks(folder, count, "weight")
        yield BlockTensor(torch.float32, (arcs,), blocks) if weighted else None

    def labels() -> Hashed:
        yield None if y is None else BlockTensor(torch.int64, (nodes,), [y])

    def masks() -> Hashed:
        for number, _ in enumerate(MASKS, start=1):
            yield None if y is None else BlockTensor(torch.bool, (nodes,), [split == number])

    # What takes longest begins first.
    parts = (_features(features, progress), edges(), labels(), masks())
    of_features, of_edges, *others = ordered_map(tensor_hash, parts)
    return fingerprint_text(nodes, arcs, [of_edges, of_features, *others])


def shard_edge_digest(shards: Shards) -> str:
    """Return what :func:`..graph_fingerprint.edge_digest` returns for the graph in memory."""
    row_start = whole_row_start(shard.row_start for shard in shards.open_all())
    count = torch.tensor(shards.num_nodes)
    edges = _ends(shards.folder, len(shards), row_start)
    return tensor_hash([count, BlockTensor(torch.int64, (2, int(row_start[-1])), edges)])


def _ends(folder: Path, count: int, row_start: Array) -> Iterator[Array]:
    """The sources of all arcs, then the targets, as an edge index has them."""
    nodes, arcs = len(row_start) - 1, int(row_start[-1])
    inner = np.searchsorted(row_start, np.arange(_BLOCK, arcs, _BLOCK))
    for first, last in pairwise([0, *np.unique(inner[inner > 0]).tolist(), nodes]):
        if first < last:
            yield np.repeat(np.arange(first, last), np.diff(row_start[first : last + 1]))
    for block in _blocks(folder, count, "column"):
        yield block.astype(np.int64)


def _blocks(folder: Path, count: int, name: str) -> Iterator[Array]:
    for shard in range(count):
        yield from npy_blocks(array_path(folder, shard, name), _BLOCK)


def _features(features: FeatureFiles, progress: ProgressCallback) -> Hashed:
    nodes, columns = len(features.nonzero), features.num_features
    rows = max(1, _BLOCK // columns)
    stored = int(features.nonzero.sum(dtype=np.int64))
    sparse = stored < SPARSE_BELOW * max(nodes * columns, 1)

    def blocks(done: int = 0) -> Iterator[Array]:
        for block in features.read(rows):
            yield block
            done += len(block)
            progress(done, nodes * (1 + sparse), "hashing the graph")

    if not sparse:
        yield BlockTensor(torch.float32, (nodes, columns), blocks())
        return
    start = np.zeros(nodes + 1, np.int64)
    np.cumsum(features.nonzero, out=start[1:])
    yield torch.tensor([nodes, columns])
    yield torch.from_numpy(start)
    yield BlockTensor(torch.int64, (stored,), (np.nonzero(block)[1] for block in blocks()))
    values = (block[block != 0] for block in blocks(nodes))
    yield BlockTensor(torch.float32, (stored,), values)
