r"""Every normalization of A + I as two vectors, so that one of its entries needs no other.

Each of the matrices that a graph convolution multiplies by is diag(l) (A + I) diag(r):

================== ================== ==================
normalization      l                  r
================== ================== ==================
renormalized       s = d̃^(-1/2)       s
row                s / t              s
column             s                  s / t
symmetric          s / √t             s / √t
doubly-stochastic  x                  x
================== ================== ==================

with d̃ the row sums of A + I, t = s ∘ (A + I) s the row sums of Â, and x the scaling of ``balance``.
A sampled batch therefore gets the exact entries of the whole graph's matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import RawlsError, unknown_name
from ..balancing import NORMALIZATIONS, balance
from .adjacency import Adjacency

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Factors:
    """Two vectors l and r such that l_v a_vu r_u is the matrix's entry of row v and column u.

    Attributes:
        left: l, float64 (nodes,).
        right: r, float64 (nodes,).
    """

    left: Array
    right: Array

    @classmethod
    def of(cls, adjacency: Adjacency, normalization: str, scale: Array | None = None) -> Factors:
        """Compute the factors of a graph.

        Args:
            adjacency: The graph.
            normalization: One of :data:`rawlsgcn.balancing.NORMALIZATIONS`.
            scale: The x of the doubly stochastic form, if it is known already.

        Returns:
            The factors.

        Raises:
            RawlsError: If there is no such normalization, or the graph cannot be balanced.
        """
        if normalization not in NORMALIZATIONS:
            raise unknown_name("normalization", normalization, NORMALIZATIONS)
        if normalization == "doubly-stochastic":
            scale = doubly_stochastic_scale(adjacency) if scale is None else scale
            return cls(scale, scale)
        s = 1 / np.sqrt(adjacency.row_sums())
        if normalization == "renormalized":
            return cls(s, s)
        t = s * adjacency.row_sums(s)
        if normalization == "row":
            return cls(s / t, s)
        if normalization == "column":
            return cls(s, s / t)
        return cls(s / np.sqrt(t), s / np.sqrt(t))


def doubly_stochastic_scale(adjacency: Adjacency, tol: float = 1e-8) -> Array:
    """Compute x with diag(x) (A + I) diag(x) doubly stochastic, for a graph in memory."""
    from scipy.sparse import csr_array

    if len(adjacency.columns) > 1:
        raise RawlsError(
            "the shards are not balanced yet: run torchrun --nproc-per-node "
            f"{len(adjacency.columns)} -m rawlsgcn balance --shards FOLDER"
        )
    (column,) = adjacency.columns
    weights = [np.ones(len(column), np.uint8)] if adjacency.weights is None else adjacency.weights
    size = (adjacency.num_nodes, adjacency.num_nodes)
    matrix = csr_array((weights[0], column, adjacency.row_start), shape=size)
    scaling = balance(matrix, self_loops=True, tol=tol)
    if scaling.scale is None:
        raise RawlsError(
            "the graph is not symmetric: make its edges run both ways before it is balanced"
        )
    if not scaling.converged and not scaling.residual <= tol:
        raise RawlsError(f"the graph could not be balanced: {scaling}")
    return np.asarray(scaling.scale.numpy())
