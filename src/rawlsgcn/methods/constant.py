"""A constant matrix, dense or sparse, with its transpose at hand for the backward pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..sparse import csr_tensor


@dataclass(frozen=True)
class Constant:
    """A matrix that products use from both sides.

    For a sparse matrix the transpose is stored explicitly: a product with it is several times
    faster than with a ``.t()`` view. A symmetric matrix is its own transpose.
    """

    matrix: Tensor
    transpose: Tensor

    @classmethod
    def of(cls, matrix: Tensor, *, symmetric: bool = False) -> Constant:
        if symmetric:
            return cls(matrix, matrix)
        if matrix.layout == torch.strided:
            return cls(matrix, matrix.t())
        return cls(matrix, csr_transpose(matrix))

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.matrix @ other

    @property
    def T(self) -> Constant:
        return Constant(self.transpose, self.matrix)


def csr_transpose(matrix: Tensor) -> Tensor:
    """The transpose of a CSR matrix, as CSR with the same index type."""
    index = matrix.col_indices().dtype
    flipped = matrix.t().to_sparse_csr()
    return csr_tensor(
        flipped.crow_indices().to(index),
        flipped.col_indices().to(index),
        flipped.values(),
        flipped.shape,
    )
