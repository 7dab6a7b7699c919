"""The rivals: what a user would otherwise run, in its ordinary form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from rawlsgcn.methods import Inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CachedGCN(nn.Module):
    """torch_geometric's GCN as its examples write it: GCNConv with ``cached=True``, dense x."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = GCNConv(features, hidden, cached=True)
        self.second = GCNConv(hidden, classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        out: Tensor = self.second(nn.functional.dropout(h, 0.5, self.training), edge_index)
        return out


def cached_gcn_training(inputs: Inputs) -> Callable[[int], None]:
    """A function that trains torch_geometric's cached GCN for a number of epochs."""
    x = inputs.x if inputs.x.layout == torch.strided else inputs.x.to_dense()
    model = CachedGCN(inputs.num_features, 64, inputs.num_classes).to(inputs.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    labels = inputs.y[inputs.train]

    def train(epochs: int) -> None:
        model.train()
        for _ in range(epochs):
            optimizer.zero_grad()
            out = model(x, inputs.edge_index)[inputs.train]
            nn.functional.cross_entropy(out, labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return train


def textbook_sinkhorn_knopp(matrix: Any, tol: float, limit: int = 20_000) -> int:
    """Row and column scaling in turn with scipy's product; the number of products it took."""
    transposed = matrix.T.tocsr()
    rows = np.ones(matrix.shape[0])
    columns = 1 / (transposed @ rows)
    for products in range(2, limit, 2):
        sums = matrix @ columns
        if np.abs(rows * sums - 1).max() <= tol:
            return products
        rows = 1 / sums
        columns = 1 / (transposed @ rows)
    return limit


def published_sinkhorn_knopp(matrix: Any, tol: float, limit: int = 1000) -> tuple[int, Any]:
    """The procedure of the published RawlsGCN code; its iterations, and the matrix it ends with.

    Every iteration makes c = 1 / (Pᵀ r) and r = 1 / (P c) and then replaces the whole matrix by
    diag(r) P diag(c), whose row and column sums it looks at. As r was made for the matrix before,
    it is stale in the next iteration. That costs many iterations: from Â of Amazon-Photo to 1e-2
    it takes 165 and ends 0.116 away from symmetry, as the published code does.
    """
    from scipy import sparse

    rows: NDArray[np.float64] = np.ones(matrix.shape[0])
    columns = 1 / (matrix.T @ rows)
    rows = 1 / (matrix @ columns)
    for iterations in range(limit):
        sums = matrix.sum(axis=1), matrix.sum(axis=0)
        if max(np.abs(side - 1).max() for side in sums) <= tol:
            return iterations, matrix
        columns = 1 / (matrix.T @ rows)
        rows = 1 / (matrix @ columns)
        matrix = sparse.diags_array(rows) @ matrix @ sparse.diags_array(columns)
    return limit, matrix
