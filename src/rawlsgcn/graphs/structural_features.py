"""Features for graphs that have none, made of the edges alone.

Up to ``MOST_ONE_HOT`` nodes a node's only feature is itself (a unit vector): smoothed over the
graph, it says which nodes are near. A larger graph gets the leading singular vectors of Â, which
say the same in a few numbers, and the logarithm of the degree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.sparse import csr_tensor

MOST_ONE_HOT = 20_000
SPECTRAL = 128


def structural_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Make features of the edges alone, which go in both directions, without self-loops.

    They are the identity as CSR up to 20,000 nodes; for more a dense matrix with 129 columns. The
    same edges give the same features.
    """
    if num_nodes <= MOST_ONE_HOT:
        numbers = torch.arange(num_nodes + 1)
        return csr_tensor(numbers, numbers[:-1], torch.ones(num_nodes), (num_nodes, num_nodes))
    degree = torch.bincount(edge_index[0], minlength=num_nodes) + 1.0
    factor = degree.rsqrt()
    row, column = edge_index
    values = torch.cat([factor[row] * factor[column], factor.square()])
    loops = torch.arange(num_nodes)
    entries = torch.stack([torch.cat([row, loops]), torch.cat([column, loops])])
    matrix = torch.sparse_coo_tensor(entries, values, (num_nodes, num_nodes)).to_sparse_csr()
    random = torch.Generator().manual_seed(0)
    basis = torch.randn(num_nodes, SPECTRAL, generator=random)
    for _ in range(4):  # subspace iteration; Â is symmetric
        basis = torch.linalg.qr(matrix @ (matrix @ basis)).Q
    vectors = torch.linalg.eigh(basis.T @ (matrix @ basis)).eigenvectors
    found = basis @ vectors * num_nodes**0.5
    return torch.cat([found, degree.log()[:, None]], 1)


def structural_note(num_nodes: int) -> str:
    """Return the sentence that says what the features are."""
    if num_nodes <= MOST_ONE_HOT:
        what = "each node itself (a unit vector)"
    else:
        what = f"{SPECTRAL} singular vectors of the normalized adjacency matrix and the degree"
    return f"the graph has no node features: its structure alone is used, as features {what}."


def is_structural(x: Tensor, edge_index: Tensor) -> bool:
    """Whether features can be those of :func:`structural_features`, by what is fast to compare."""
    nodes = int(x.shape[0])
    if nodes <= MOST_ONE_HOT:
        if tuple(x.shape) != (nodes, nodes):
            return False
        stored = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
        numbers, ones = torch.arange(nodes), torch.ones(nodes, dtype=x.dtype)
        return torch.equal(stored.col_indices(), numbers) and torch.equal(stored.values(), ones)
    if x.layout != torch.strided or x.shape[1] != SPECTRAL + 1:
        return False
    degree = torch.bincount(edge_index[0], minlength=nodes) + 1.0
    return torch.equal(x[:, -1], degree.log())
