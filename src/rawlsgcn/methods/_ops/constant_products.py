"""Products that never change in training, computed once: Â X, kept sparse where it is sparse."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core.sparse import csr_tensor

# Above this share of nonzeros a dense product is faster than a sparse one (measured on two CPU
# cores: dense about 190, sparse about 20 to 30 GFLOP/s).
DENSE_ABOVE = 0.15


def propagated(matrix: Tensor, x: Tensor) -> Tensor:
    """The product of a CSR matrix with dense or CSR features, in the form that is faster to use."""
    if x.layout == torch.strided:
        return matrix @ x
    product = _sparse_product(matrix, x)
    return suited(product)


def suited(matrix: Tensor) -> Tensor:
    """A CSR matrix, made dense if it is dense enough."""
    share = matrix.values().numel() / max(1, matrix.shape[0] * matrix.shape[1])
    return matrix.to_dense() if share > DENSE_ABOVE else matrix


def _sparse_product(a: Tensor, b: Tensor) -> Tensor:
    # scipy's product on the CPU: torch has none for CSR with 32-bit indices on every build.
    from scipy import sparse

    def to_scipy(m: Tensor) -> sparse.csr_array:
        parts = (m.values(), m.col_indices(), m.crow_indices())
        return sparse.csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(m.shape))

    product = sparse.csr_array(to_scipy(a) @ to_scipy(b))
    product.sort_indices()
    return csr_tensor(
        torch.from_numpy(product.indptr.astype("int32", copy=False)),
        torch.from_numpy(product.indices.astype("int32", copy=False)),
        torch.from_numpy(product.data),
        product.shape,
    ).to(a.device)
