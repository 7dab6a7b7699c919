r"""The matrices a graph convolution multiplies by: Â and the paper's four normalisations of it.

With A without self-loops, D̃ the degrees of A + I and Â = D̃^(-1/2) (A + I) D̃^(-1/2):

================== ===================================================================
renormalised       Â itself (Kipf and Welling 2017), the plain GCN
row                Â divided by its row sums; every row sums to 1
column             Â divided by its column sums; every column sums to 1
symmetric          D^(-1/2) Â D^(-1/2), with D the degrees of Â itself
doubly-stochastic  Â_DS = diag(x) (A + I) diag(x); every row and every column sums to 1
================== ===================================================================
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._core.errors import RawlsError, unknown_name
from .._core.sparse import csr_tensor
from .matrix_input import read_matrix
from .scaling import Scaling
from .solver import balance
from .sparse_matrix import SparseMatrix, with_stored_loops, without_diagonal

#: The ablation's four kinds (the paper's Table 3); ``propagation_matrix`` knows "renormalised" too.
NORMALIZATIONS = ("row", "column", "symmetric", "doubly-stochastic")


def renormalized_laplacian(
    edge_index: Any,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    r"""Â = D̃^(-1/2) (A + I) D̃^(-1/2) as a sparse CSR tensor with 32-bit indices.

    CSRArrays self-loops are dropped before I is added; repeated edges add up.
    """
    graph, _ = read_matrix(edge_index, edge_weight, num_nodes)
    if bool((graph.rows() == graph.column).any()):
        graph = without_diagonal(graph)
    graph = with_stored_loops(SparseMatrix(graph.row_start, graph.column, graph.values, True))
    row = graph.rows()
    ones = graph.entries(0, len(graph.column))
    factor = _sums(row, ones, graph.size).rsqrt()
    values = (factor[row] * factor[graph.column]) * ones
    return _csr(graph.row_start, graph.column, values.to(dtype))


def normalize(A_hat: Tensor, kind: str) -> Tensor:
    """One of :data:`NORMALIZATIONS` of Â (sparse), as a sparse CSR tensor of the same dtype."""
    if kind not in NORMALIZATIONS:
        raise unknown_name("normalisation", kind, NORMALIZATIONS)
    if kind == "doubly-stochastic":
        return _csr(*_usable(balance(A_hat, tol=_tolerance(A_hat.dtype))).csr(A_hat.dtype))
    matrix, _ = read_matrix(A_hat, None, None)
    row, column = matrix.rows(), matrix.column
    values = matrix.entries(0, len(column))
    # A row of Â without entries (no self-loops) has nothing to divide and stays empty.
    if kind == "row":
        values = values / _sums(row, values, matrix.size)[row]
    elif kind == "column":
        values = values / _sums(column, values, matrix.size)[column]
    else:
        factor = _sums(row, values, matrix.size).rsqrt()
        values = (factor[row] * factor[column]) * values
    return _csr(matrix.row_start, column, values.to(A_hat.dtype))


def propagation_matrix(
    edge_index: Any,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    kind: str = "renormalised",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """The matrix of a graph convolution by name, computed in float64 and then cast.

    ``kind`` is "renormalised" or one of :data:`NORMALIZATIONS`. The result is a sparse CSR tensor
    with 32-bit indices, with which products take a fraction of the time of 64-bit ones.
    """
    if kind not in ("renormalised", *NORMALIZATIONS):
        raise unknown_name("normalisation", kind, ("renormalised", *NORMALIZATIONS))
    if kind == "doubly-stochastic":
        # The same matrix as the doubly stochastic form of Â, from simpler entries.
        tol = _tolerance(dtype)
        scaling = balance(edge_index, edge_weight, num_nodes=num_nodes, tol=tol)
        matrix = _csr(*_usable(scaling).csr(dtype))
    else:
        matrix = renormalized_laplacian(edge_index, edge_weight, num_nodes)
        matrix = matrix if kind == "renormalised" else normalize(matrix, kind)
        starts, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        matrix = _csr(starts, column, values.to(dtype))
    return matrix if device is None else matrix.to(device)


def _tolerance(dtype: torch.dtype) -> float:
    """As exact as the values can tell."""
    return 1e-12 if dtype == torch.float64 else 1e-8


def _usable(scaling: Scaling) -> Scaling:
    """A scaling that stopped at the rounding of float64 is as good as there is."""
    if not scaling.converged and not scaling.residual <= 1e-8:
        raise RawlsError(f"the matrix could not be balanced: {scaling}")
    return scaling


def _sums(group: Tensor, values: Tensor, size: int) -> Tensor:
    sums = torch.zeros(size, dtype=values.dtype, device=values.device)
    return sums.index_add_(0, group, values)


def _csr(starts: Tensor, column: Tensor, values: Tensor) -> Tensor:
    return csr_tensor(starts, column, values, (len(starts) - 1, len(starts) - 1))
