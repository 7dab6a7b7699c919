"""Edges in the form the method is defined for: both directions, no self-loops, each once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from .notes import GraphFacts

Array = NDArray[Any]


def clean_edges(
    source: Array, target: Array, weight: Array | None, nodes: int, facts: GraphFacts
) -> tuple[Tensor, Tensor | None]:
    """Return the symmetric adjacency matrix A of the arcs, as a sorted edge index and its weights.

    Self-loops and arcs of weight zero are dropped. A repeated arc becomes one with the sum of its
    weights (without weights simply one). An arc in either direction becomes an edge in both; where
    both are there with different weights, their mean counts. Weights that are all one are not
    kept. What was changed is counted in ``facts``.
    """
    keep = source != target
    facts.self_loops += len(source) - int(np.count_nonzero(keep))
    if weight is not None:
        facts.zero_weights += int(np.count_nonzero(keep & (weight == 0)))
        keep &= weight != 0
    if not keep.all():
        source, target = source[keep], target[keep]
        weight = None if weight is None else weight[keep]

    values = np.ones(len(source), np.float32) if weight is None else weight.astype(np.float64)
    forward = sp.coo_matrix((values, (source, target)), shape=(nodes, nodes)).tocsr()
    forward.sum_duplicates()
    repeated = len(source) - forward.nnz
    if repeated:
        facts.repeated_edges += repeated
        facts.weights_summed = weight is not None
    backward = forward.T.tocsr()
    alike = np.array_equal(forward.indptr, backward.indptr)
    if alike and np.array_equal(forward.indices, backward.indices):
        matrix = forward
        if weight is not None:
            differ = int(np.count_nonzero(forward.data != backward.data)) // 2
            if differ:
                facts.unequal_weights += differ
                matrix.data = (forward.data + backward.data) / 2
    else:
        matrix = _symmetrize(forward, backward, weighted=weight is not None)
        facts.one_way_arcs, facts.arcs = matrix.nnz - forward.nnz, forward.nnz
    if weight is not None:
        # Single precision would keep such a weight as zero, which would count as a neighbor.
        tiny = matrix.data < np.finfo(np.float32).tiny
        facts.tiny_weights += int(np.count_nonzero(tiny)) // 2
        matrix.data[tiny] = 0
        matrix.eliminate_zeros()
    matrix.sort_indices()
    edge_index = np.empty((2, matrix.nnz), np.int64)
    edge_index[0] = np.repeat(np.arange(nodes), np.diff(matrix.indptr))
    edge_index[1] = matrix.indices
    if weight is None or bool(np.all(matrix.data == 1)):
        return torch.from_numpy(edge_index), None
    # What overflows to infinity is refused by the validation, with a sentence of its own.
    with np.errstate(over="ignore"):
        return torch.from_numpy(edge_index), torch.from_numpy(matrix.data.astype(np.float32))


def _symmetrize(forward: Any, backward: Any, weighted: bool) -> Any:
    total = forward + backward
    if weighted:
        for matrix in (forward, backward):
            matrix.data = np.ones_like(matrix.data)
        total.sort_indices()
        directions = forward + backward
        directions.sort_indices()
        total.data /= directions.data
    return total


def is_symmetric(source: Array, target: Array, nodes: int) -> bool:
    """Whether every arc has its opposite, so that there are no directions."""
    forth, back = (
        np.unique(a.astype(np.int64) * nodes + b) for a, b in ((source, target), (target, source))
    )
    return bool(np.array_equal(forth, back))


def in_degrees(source: Array, target: Array, nodes: int) -> NDArray[np.int64]:
    """How many other nodes have an arc to each node, before the arcs lose their directions."""
    keep = source != target
    ones, ends = np.ones(int(keep.sum())), (source[keep], target[keep])
    arcs = sp.coo_matrix((ones, ends), shape=(nodes, nodes)).tocsc()
    counted: NDArray[np.int64] = np.diff(arcs.indptr).astype(np.int64)
    return counted
