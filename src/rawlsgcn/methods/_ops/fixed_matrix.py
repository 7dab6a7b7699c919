"""A constant matrix, dense or sparse, with its transpose at hand for the backward pass."""

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


@dataclass(frozen=True)
class FixedMatrix:
    """A matrix that products use from both sides.

    For a sparse matrix the transpose is stored explicitly: a product with it is several times
    faster than with a ``.t()`` view. A symmetric matrix is its own transpose.
    """

    matrix: Tensor
    transpose: Tensor

    @classmethod
    def of(cls, matrix: Tensor, *, symmetric: bool = False) -> FixedMatrix:
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
        return FixedMatrix(self.transpose, self.matrix)


class _Product(torch.autograd.Function):
    """A constant matrix times a tensor that learns."""

    @staticmethod
    def forward(ctx: Any, constant: FixedMatrix, tensor: Tensor) -> Tensor:
        ctx.constant = constant
        return constant @ tensor

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.constant.T @ grad


def times(left: Tensor | FixedMatrix, right: Tensor) -> Tensor:
    """left @ right, where the left side is a layer's output or constant."""
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
