r"""Every normalisation of A + I as two vectors, so that one of its entries needs no other.

Each of the matrices that a graph convolution multiplies by is diag(l) (A + I) diag(r):

================== ================== ==================
form               l                  r
================== ================== ==================
renormalised       s = d̃^(-1/2)       s
row                s / t              s
column             s                  s / t
symmetric          s / √t             s / √t
doubly-stochastic  x                  x
================== ================== ==================

with d̃ the row sums of A + I, t = s ∘ (A + I) s the row sums of Â, and x the scaling of ``balance``.
A sampled block therefore gets the exact entries of the whole graph's matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import RawlsError, unknown_name
from ..balancing import balance
from .adjacency import Adjacency

Array = NDArray[Any]

FORMS = ("renormalised", "row", "column", "symmetric", "doubly-stochastic")


@dataclass(frozen=True, eq=False)
class Factors:
    """l and r, float64: the entry of row v and column u is l_v a_vu r_u."""

    left: Array
    right: Array

    @classmethod
    def of(cls, adjacency: Adjacency, form: str, scale: Array | None = None) -> Factors:
        """``scale`` is the x of the doubly stochastic form where it is known already."""
        if form not in FORMS:
            raise unknown_name("normalisation", form, FORMS)
        if form == "doubly-stochastic":
            scale = doubly_stochastic_scale(adjacency) if scale is None else scale
            return cls(scale, scale)
        s = 1 / np.sqrt(adjacency.row_sums())
        if form == "renormalised":
            return cls(s, s)
        t = s * adjacency.row_sums(s)
        if form == "row":
            return cls(s / t, s)
        if form == "column":
            return cls(s, s / t)
        return cls(s / np.sqrt(t), s / np.sqrt(t))


def doubly_stochastic_scale(adjacency: Adjacency, tol: float = 1e-8) -> Array:
    """x with diag(x) (A + I) diag(x) doubly stochastic, for a graph in memory."""
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
