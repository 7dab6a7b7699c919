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
from ..._core.row_files import read_npy_header
from ..._core.threads import ordered_map
from ..catalog import MASKS
from ..graph_statistics import TensorHash, fingerprint_text
from ..node_features import SPARSE_BELOW
from .shard_files import array_path

if TYPE_CHECKING:
    from .feature_files import FeatureFiles
    from .shards import Shards

Array = NDArray[Any]
#: Numbers that are hashed at a time.
_BLOCK = 1 << 20


def shard_fingerprint(
    folder: Path,
    cuts: list[int],
    row_start: Array,
    *,
    weighted: bool,
    features: FeatureFiles,
    y: Array | None,
    split: Array,
    progress: ProgressCallback = no_progress,
) -> str:
    """Return what :func:`..graph_statistics.fingerprint` returns for the graph in memory.

    The arcs and the features are read once in blocks, features of which under a tenth is non-zero
    twice; edges and features are hashed on a thread each.
    """
    nodes, arcs = len(row_start) - 1, int(row_start[-1])

    def edges() -> str:
        digest = TensorHash()
        digest.add(torch.int64, (2, arcs), _ends(folder, len(cuts) - 1, row_start))
        if weighted:
            digest.add(torch.float32, (arcs,), _blocks(folder, len(cuts) - 1, "weight"))
        else:
            digest.add_missing()
        return digest.hexdigest()

    def labels() -> str:
        digest = TensorHash()
        if y is None:
            digest.add_missing()
        else:
            digest.add(torch.int64, (nodes,), [y])
        return digest.hexdigest()

    def masks() -> str:
        digest = TensorHash()
        for number, _ in enumerate(MASKS, start=1):
            if y is None:
                digest.add_missing()
            else:
                digest.add(torch.bool, (nodes,), [split == number])
        return digest.hexdigest()

    parts = {
        "features": lambda: _hash_features(features, progress),
        "edges": edges,
        "labels": labels,
        "split": masks,
    }
    hashes = dict(zip(parts, ordered_map(lambda part: part(), parts.values()), strict=True))
    ordered = {name: hashes[name] for name in ("edges", "features", "labels", "split")}
    return fingerprint_text(nodes, arcs, ordered)


def shard_edge_digest(shards: Shards) -> str:
    """Return what :func:`..graph_statistics.edge_digest` returns for the graph in memory."""
    ends = [shard.row_start[1:] for shard in shards.open_all()]
    starts = np.cumsum([0, *(int(each[-1]) for each in ends)])
    row_start = np.concatenate(
        [[0], *(each + start for each, start in zip(ends, starts[:-1], strict=True))]
    )
    digest = TensorHash()
    digest.add(torch.int64, (), [np.array(shards.num_nodes, dtype=np.int64)])
    digest.add(torch.int64, (2, int(row_start[-1])), _ends(shards.folder, len(shards), row_start))
    return digest.hexdigest()


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
        with array_path(folder, shard, name).open("rb") as file:
            (length,), kind = read_npy_header(file)
            for first in range(0, length, _BLOCK):
                yield np.fromfile(file, kind, min(_BLOCK, length - first))


def _hash_features(features: FeatureFiles, progress: ProgressCallback) -> str:
    nodes, columns = len(features.nonzero), features.num_features
    rows = max(1, _BLOCK // columns)
    stored = int(features.nonzero.sum(dtype=np.int64))
    sparse = stored < SPARSE_BELOW * max(nodes * columns, 1)

    def blocks(done: int = 0) -> Iterator[Array]:
        for block in features.read(rows):
            yield block
            done += len(block)
            progress(done, nodes * (1 + sparse), "hashing the graph")

    digest = TensorHash()
    if not sparse:
        digest.add(torch.float32, (nodes, columns), blocks())
        return digest.hexdigest()
    start = np.zeros(nodes + 1, np.int64)
    np.cumsum(features.nonzero, out=start[1:])
    digest.add(torch.int64, (2,), [np.array([nodes, columns])])
    digest.add(torch.int64, start.shape, [start])
    digest.add(torch.int64, (stored,), (np.nonzero(block)[1] for block in blocks()))
    digest.add(torch.float32, (stored,), (block[block != 0] for block in blocks(nodes)))
    return digest.hexdigest()
