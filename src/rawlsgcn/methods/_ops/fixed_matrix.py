"""Matrices that training does not change: products in both passes, and products computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..._core.sparse import csr_tensor

#: Entries up to which a dense transpose is copied on the CPU: a product with it is a twentieth
#: faster than with a view, which is worth 64 MB but not the size of any matrix.
_COPIED = 1 << 24
#: Above this share of nonzeros a dense product is faster than a sparse one (measured on two CPU
#: cores: dense about 190, sparse about 20 to 30 GFLOP/s).
DENSE_ABOVE = 0.15


@dataclass(frozen=True)
class FixedMatrix:
    """A matrix that training does not change, with its transpose for the backward pass.

    For a sparse matrix the transpose is stored explicitly: a product with it is several times
    faster than with a ``.t()`` view. A symmetric matrix is its own transpose.

    Attributes:
        matrix: The matrix, dense or CSR.
        transpose: Its transpose.
    """

    matrix: Tensor
    transpose: Tensor

    @classmethod
    def of(cls, matrix: Tensor, *, symmetric: bool = False) -> FixedMatrix:
        """Make a matrix with its transpose.

        Args:
            matrix: A dense or CSR matrix.
            symmetric: Whether the matrix equals its transpose, which is then not computed.

        Returns:
            The matrix, ready for products in both passes.
        """
        if symmetric:
            return cls(matrix, matrix)
        if matrix.layout == torch.strided:
            flipped = matrix.t()
            small = matrix.numel() <= _COPIED and matrix.device.type == "cpu"
            return cls(matrix, flipped.contiguous() if small else flipped)
        return cls(matrix, csr_transpose(matrix))

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.matrix @ other

    @property
    def T(self) -> FixedMatrix:
        """The transpose."""
        return FixedMatrix(self.transpose, self.matrix)


class _Product(torch.autograd.Function):
    """A fixed matrix times a tensor that has a gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: FixedMatrix, tensor: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix @ tensor

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.T @ grad


def times(left: Tensor | FixedMatrix, right: Tensor) -> Tensor:
    """left @ right, where the left side is a layer's output or a fixed matrix."""
    if isinstance(left, Tensor):
        return left @ right
    out: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return out


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


def propagated(matrix: Tensor, x: Tensor) -> Tensor:
    """The product of a CSR matrix with dense or CSR features, dense or CSR as is faster to use."""
    if x.layout == torch.strided:
        return matrix @ x
    return suited(_sparse_product(matrix, x))


def suited(matrix: Tensor) -> Tensor:
    """A CSR matrix with 32-bit indices, or a dense one if it is dense enough."""
    share = matrix.values().numel() / max(1, matrix.shape[0] * matrix.shape[1])
    return matrix.to_dense() if share > DENSE_ABOVE else short_indices(matrix)


def short_indices(matrix: Tensor) -> Tensor:
    """A matrix whose indices, if it is CSR, have 32 bits, for faster products."""
    if matrix.layout == torch.strided:
        return matrix
    crow, columns = matrix.crow_indices().int(), matrix.col_indices().int()
    return csr_tensor(crow, columns, matrix.values(), matrix.shape)


def _sparse_product(a: Tensor, b: Tensor) -> Tensor:
    # scipy's product on the CPU: torch has none for CSR with 32-bit indices on every build.
    from scipy import sparse

    def to_scipy(m: Tensor) -> sparse.csr_array:
        parts = (m.values(), m.col_indices(), m.crow_indices())
        return sparse.csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(m.shape))

    product = sparse.csr_array(to_scipy(a) @ to_scipy(b))
    product.sort_indices()
    crow, columns, values = map(torch.from_numpy, (product.indptr, product.indices, product.data))
    return csr_tensor(crow, columns, values, product.shape).to(a.device)
