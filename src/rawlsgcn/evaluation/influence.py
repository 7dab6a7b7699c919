"""Theorem 1: the gradient of a layer as a sum of the nodes' influences, weighted by degree.

For a layer E = Â H W (one graph convolution before its activation) and G = ∂J/∂E,

    ∂J/∂W = Σ_j deg_Â(j) I_j^(row) = Σ_i deg_Â(i) I_i^(col).

Every influence matrix has rank one, so it is kept as its two vectors and never as a matrix: the
memory is that of H and G, not n times that of W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor
from torch_geometric.data import Data


@dataclass(frozen=True)
class Influence:
    """The influences of all nodes in one layer: I_v = left[v]^T right[v], weighted by degree[v]."""

    left: Tensor  #: (nodes, d_in), sparse where the layer's input is
    right: Tensor  #: (nodes, d_out)
    degree: Tensor  #: deg_Â, (nodes,)

    def matrices(self, nodes: Tensor) -> Tensor:
        """Compute the influence matrices of some ``nodes``, dense, (k, d_in, d_out)."""
        if self.left.layout == torch.strided:
            left = self.left[nodes]
        else:
            left = self.left.to_sparse().index_select(0, nodes).to_dense()
        return left.unsqueeze(-1) * self.right[nodes].unsqueeze(-2)

    def norms(self) -> Tensor:
        """Compute ‖I_v‖_F of every node, the product of its two vectors' norms, (nodes,)."""
        return _squared_rows(self.left).sqrt() * _squared_rows(self.right).sqrt()

    def total(self) -> Tensor:
        """Compute Σ_v deg_Â(v) I_v, which is ∂J/∂W (d_in, d_out) by the theorem."""
        return self.left.t() @ (self.degree.unsqueeze(-1) * self.right)


@dataclass(frozen=True)
class NodeInfluence:
    """The influence of every node on the weights of every layer.

    The degrees are the same for a symmetric Â, and 1 for a doubly stochastic one.
    """

    row: Tensor  #: ‖I^(row)‖_F, (layers, nodes)
    column: Tensor  #: ‖I^(col)‖_F, (layers, nodes)
    row_degree: Tensor  #: the weight of ``row``, (nodes,)
    column_degree: Tensor  #: the weight of ``column``, (nodes,)


def row_influence(matrix: Tensor, inputs: Tensor, gradient: Tensor) -> Influence:
    """Compute I_j^(row) = H[j]^T E_{i ~ Â[:, j]} [∂J/∂E[i]] of every node j.

    deg_Â(j) is the sum of column j, so that the theorem also holds where Â is not symmetric.

    Args:
        matrix: Â, (nodes, nodes), not negative, dense or sparse in any of torch's layouts.
        inputs: H^(l-1), the input of the layer (after dropout), (nodes, d_in), dense or sparse.
        gradient: ∂J/∂E^(l), (nodes, d_out).

    Returns:
        The influences of all nodes.
    """
    transposed = _same_type(matrix, gradient).t()
    degree = _row_sums(transposed)
    received = transposed @ gradient
    return Influence(_same_type(inputs, gradient), _divided(received, degree), degree)


def column_influence(matrix: Tensor, inputs: Tensor, gradient: Tensor) -> Influence:
    """Compute I_i^(col) = (E_{j ~ Â[i, :]} [H[j]])^T ∂J/∂E[i] of every node i.

    deg_Â(i) is the sum of row i. The gradient is divided by it, which is always dense, and not the
    input; the product is the same.

    Args:
        matrix: Â, (nodes, nodes), not negative, dense or sparse in any of torch's layouts.
        inputs: H^(l-1), the input of the layer (after dropout), (nodes, d_in), dense or sparse.
        gradient: ∂J/∂E^(l), (nodes, d_out).

    Returns:
        The influences of all nodes.
    """
    matrix, inputs = _same_type(matrix, gradient), _same_type(inputs, gradient)
    degree = _row_sums(matrix)
    return Influence(_product(matrix, inputs), _divided(gradient, degree), degree)


def node_influence(matrix: Tensor, layers: Sequence[tuple[Tensor, Tensor]]) -> NodeInfluence:
    """Compute the influence of every node in every layer.

    Args:
        matrix: Â, as in :func:`row_influence`.
        layers: (H^(l-1), ∂J/∂E^(l)) of every layer.

    Returns:
        The norms of the influences, and their weights.
    """
    rows = [row_influence(matrix, inputs, gradient) for inputs, gradient in layers]
    columns = [column_influence(matrix, inputs, gradient) for inputs, gradient in layers]
    return NodeInfluence(
        row=torch.stack([layer.norms() for layer in rows]),
        column=torch.stack([layer.norms() for layer in columns]),
        row_degree=rows[0].degree,
        column_degree=columns[0].degree,
    )


def _same_type(matrix: Tensor, like: Tensor) -> Tensor:
    return matrix.detach().to(like.dtype)


def _row_sums(matrix: Tensor) -> Tensor:
    ones = torch.ones(matrix.shape[1], 1, dtype=matrix.dtype, device=matrix.device)
    return (matrix @ ones).squeeze(-1)


def _divided(rows: Tensor, degree: Tensor) -> Tensor:
    """Rows over their degree; a node of degree 0 has no neighborhood, hence no influence."""
    return torch.where(degree == 0, 0, 1 / degree).unsqueeze(-1) * rows.detach()


def _product(matrix: Tensor, inputs: Tensor) -> Tensor:
    """Â H, sparse where both are: torch multiplies two sparse matrices of one layout only."""
    if matrix.layout == torch.strided or inputs.layout == torch.strided:
        dense = inputs if inputs.layout == torch.strided else inputs.to_dense()
        return matrix @ dense
    return matrix.to_sparse_csr() @ inputs.to_sparse_csr()


def _squared_rows(matrix: Tensor) -> Tensor:
    """‖row‖² of every row."""
    if matrix.layout == torch.strided:
        return matrix.square().sum(-1)
    return _row_sums(matrix.to_sparse().coalesce().square())


def degrees_in_laplacian(graph: Data) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Compute each node's number of neighbors and its row sum in Â = D̃^(-1/2) (A+I) D̃^(-1/2)."""
    size = int(graph.num_nodes or 0)
    source, target = graph.edge_index.cpu().numpy()
    weight = graph.get("edge_weight")
    entries = np.ones(source.size) if weight is None else weight.cpu().numpy().astype(float)
    adjacency = coo_array((entries, (source, target)), shape=(size, size)).tocsr()
    scale = 1 / np.sqrt(adjacency.sum(1) + 1)
    # Row sums of diag(s) (A+I) diag(s), without building it.
    return np.bincount(source, minlength=size), scale * (adjacency @ scale + scale)
