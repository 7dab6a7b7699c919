"""Approximate nearest nodes, for graphs too large to compare all pairs (faiss, optional)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.errors import missing_extra
from ..._core.threads import limited_threads
from ..tf_idf import unit_rows

Array = NDArray[Any]

_DIMENSIONS = 256
_SEED = 0
#: Candidates for each node that is needed: their exact cosines decide.
_CANDIDATES = 16
#: Clusters that are searched for each node.
_PROBES = 64
_BLOCK = 1 << 12


def approximate_neighbors(matrix: Any, rows: Array, count: int) -> Iterator[tuple[int, Array]]:
    """Yield blocks of ``rows``, as the position of the first one, with nodes that are near them.

    The features, a dense tensor or a scipy matrix, are reduced to 256 dimensions; nodes of nearby
    clusters are compared. Missing ones are -1. One thread and fixed seeds give the same answer.
    """
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("the approximate search for nearest nodes", "ann") from error
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        with limited_threads(1):
            points = _reduced(matrix)
        nodes, width = points.shape
        # Of k-means, which needs some dozens of nodes for each cluster.
        clusters = max(1, min(round(4 * math.sqrt(nodes)), nodes // 39))
        quantizer = faiss.IndexFlatIP(width)
        index = faiss.IndexIVFFlat(quantizer, width, clusters, faiss.METRIC_INNER_PRODUCT)
        index.cp.seed = _SEED
        index.cp.min_points_per_centroid = 1  # or faiss warns on stderr of few points
        index.nprobe = _PROBES
        index.train(points)
        index.add(points)
        for start in range(0, len(rows), _BLOCK):
            part = points[rows[start : start + _BLOCK]]
            yield start, index.search(part, min(_CANDIDATES * count, nodes))[1]
    finally:
        faiss.omp_set_num_threads(threads)


def _reduced(matrix: Any) -> Array:
    """Return the features in at most 256 dimensions, by a randomized truncated SVD, as unit rows.

    The basis is found with one power iteration (Halko, Martinsson and Tropp, 2011).
    """
    if isinstance(matrix, Tensor):
        matrix = unit_rows(matrix.cpu()).float().numpy()
    width = min(_DIMENSIONS, *matrix.shape)
    if matrix.shape[1] > width:
        matrix = matrix.astype(np.float32, copy=False)
        basis = np.random.default_rng(_SEED).standard_normal((matrix.shape[1], width))
        basis = basis.astype(np.float32)
        for _ in range(2):
            product = torch.from_numpy(matrix.T @ (matrix @ basis))
            basis = torch.linalg.qr(product).Q.contiguous().numpy()
        matrix = matrix @ basis
    elif not isinstance(matrix, np.ndarray):
        matrix = matrix.toarray()
    points: Array = unit_rows(torch.from_numpy(matrix.astype(np.float32, copy=False))).numpy()
    return np.ascontiguousarray(points)
