r"""The matrices a graph convolution multiplies by: Â and the paper's four normalizations of it.

With A without self-loops, D̃ the degrees of A + I and Â = D̃^(-1/2) (A + I) D̃^(-1/2):

================== ===================================================================
renormalized       Â itself (Kipf and Welling 2017), the plain GCN
row                Â divided by its row sums; every row sums to 1
column             Â divided by its column sums; every column sums to 1
symmetric          D^(-1/2) Â D^(-1/2), with D the degrees of Â itself
doubly-stochastic  Â_DS = diag(x) (A + I) diag(x); every row and every column sums to 1
================== ===================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .._core.errors import unknown_name
from .._core.sparse import csr_tensor
from .matrix_input import read_matrix
from .scaling import tolerance
from .solver import balance
from .sparse_matrix import SparseMatrix, with_stored_loops, without_diagonal

#: The normalizations that the paper compares in its ablation (Table 3).
ABLATION_NORMALIZATIONS = ("row", "column", "symmetric", "doubly-stochastic")
#: Every matrix that :func:`propagation_matrix` computes.
NORMALIZATIONS = ("renormalized", *ABLATION_NORMALIZATIONS)


def renormalized_laplacian(
    edge_index: Any,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    r"""Compute Â, the renormalized graph Laplacian of the GCN.

    .. math:: \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    Stored self-loops are dropped before I is added; repeated edges add up. See `Kipf and Welling
    (2017) <https://arxiv.org/abs/1609.02907>`_.

    Args:
        edge_index: An edge index of shape (2, E), a scipy sparse matrix or a torch sparse tensor.
        edge_weight: Weights (E,) of the edges of an edge index; by default all are one.
        num_nodes: Number of nodes of an edge index; by default its largest node plus one.
        dtype: Type of the values.

    Returns:
        Â as a sparse CSR tensor (nodes, nodes) with 32-bit indices.

    Raises:
        RawlsError: If the input is not such a matrix.
    """
    graph, _ = read_matrix(edge_index, edge_weight, num_nodes)
    if bool((graph.rows() == graph.column).any()):
        graph = without_diagonal(graph)
    graph = with_stored_loops(replace(graph, loops=True))
    values = _divided_twice(graph, graph.entries(0, len(graph.column)))
    return _csr(graph.row_start, graph.column, values.to(dtype))


def normalize(A_hat: Tensor, normalization: str) -> Tensor:
    """Compute one of the paper's four normalizations of Â.

    Args:
        A_hat: Â, a sparse tensor (nodes, nodes).
        normalization: One of :data:`ABLATION_NORMALIZATIONS`.

    Returns:
        A sparse CSR tensor of the same dtype.

    Raises:
        RawlsError: If there is no such normalization, or Â has no doubly stochastic form.
    """
    if normalization not in ABLATION_NORMALIZATIONS:
        raise unknown_name("normalization", normalization, ABLATION_NORMALIZATIONS)
    if normalization == "doubly-stochastic":
        scaling = balance(A_hat, tol=tolerance(A_hat.dtype)).usable("the matrix")
        return _csr(*scaling.csr(A_hat.dtype))
    matrix, _ = read_matrix(A_hat, None, None)
    values = matrix.entries(0, len(matrix.column))
    # A row of Â without entries (no self-loops) has nothing to divide and stays empty.
    if normalization == "symmetric":
        values = _divided_twice(matrix, values)
    else:
        group = matrix.rows() if normalization == "row" else matrix.column
        values = values / _sums(group, values, matrix.size)[group]
    return _csr(matrix.row_start, matrix.column, values.to(A_hat.dtype))


def propagation_matrix(
    edge_index: Any,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    normalization: str = "renormalized",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Compute the matrix of a graph convolution, in float64, and cast it to ``dtype``.

    Args:
        edge_index: An edge index of shape (2, E), a scipy sparse matrix or a torch sparse tensor.
        edge_weight: Weights (E,) of the edges of an edge index; by default all are one.
        num_nodes: Number of nodes of an edge index; by default its largest node plus one.
        normalization: One of :data:`NORMALIZATIONS`.
        dtype: Type of the values.
        device: Device of the result; by default that of the input.

    Returns:
        A sparse CSR tensor (nodes, nodes) with 32-bit indices, with which products take a fraction
        of the time of 64-bit ones.

    Raises:
        RawlsError: If there is no such normalization, or the input is not such a matrix.

    Example:
        >>> import torch
        >>> from rawlsgcn.balancing import propagation_matrix
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> propagation_matrix(path).to_dense()
        tensor([[0.5000, 0.4082, 0.0000],
                [0.4082, 0.3333, 0.4082],
                [0.0000, 0.4082, 0.5000]])
    """
    if normalization not in NORMALIZATIONS:
        raise unknown_name("normalization", normalization, NORMALIZATIONS)
    if normalization == "doubly-stochastic":
        # The same matrix as the doubly stochastic form of Â, from simpler entries.
        tol = tolerance(dtype)
        scaling = balance(edge_index, edge_weight, num_nodes=num_nodes, tol=tol)
        matrix = _csr(*scaling.usable("the matrix").csr(dtype))
    else:
        matrix = renormalized_laplacian(edge_index, edge_weight, num_nodes)
        matrix = matrix if normalization == "renormalized" else normalize(matrix, normalization)
        matrix = _csr(matrix.crow_indices(), matrix.col_indices(), matrix.values().to(dtype))
    return matrix if device is None else matrix.to(device)


def _sums(group: Tensor, values: Tensor, size: int) -> Tensor:
    sums = torch.zeros(size, dtype=values.dtype, device=values.device)
    return sums.index_add_(0, group, values)


def _divided_twice(matrix: SparseMatrix, values: Tensor) -> Tensor:
    """Divide each entry by the roots of the sums of its row and of the row of its column."""
    row = matrix.rows()
    factor = _sums(row, values, matrix.size).rsqrt()
    return (factor[row] * factor[matrix.column]) * values


def _csr(starts: Tensor, column: Tensor, values: Tensor) -> Tensor:
    return csr_tensor(starts, column, values, (len(starts) - 1, len(starts) - 1))
