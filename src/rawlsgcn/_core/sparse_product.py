"""Sparse products on the CPU, by our own compiled code where there is some, otherwise by torch.

Torch gives them to MKL, which takes about three times as long for the 64 columns of a layer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .kernels import CSRArrays, WideProduct, kernels

#: Bytes of a row under which there is nothing to gain, and which the compiled code needs.
_NARROW = 64


class SparseProduct:
    """Products with one CSR matrix; what is the same for all of them is made once."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix
        self._compiled: WideProduct | None = None
        fast = kernels() if matrix.device.type == "cpu" else None
        if fast is not None:
            stored = CSRArrays(matrix.crow_indices(), matrix.col_indices(), matrix.values())
            self._compiled = fast.wide_product(stored) if stored.usable else None

    def __call__(self, right: Tensor, out: Tensor) -> Tensor:
        """Write matrix @ right to ``out``, without a gradient."""
        if self._compiled is not None and self._suits(right, out):
            self._compiled(right, out)
            return out
        return torch.addmm(out, self._matrix, right, beta=0, out=out)

    def _suits(self, right: Tensor, out: Tensor) -> bool:
        (rows, columns), width = self._matrix.shape, right.shape[-1]
        fitting = right.shape == (columns, width) and out.shape == (rows, width)
        alike = right.dtype == out.dtype == self._matrix.dtype
        wide = width * right.element_size() >= _NARROW
        return fitting and alike and wide and right.is_contiguous() and out.is_contiguous()
