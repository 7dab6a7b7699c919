"""Torch's CSR matrices, products with them, and the vectors that balancing multiplies with them.

CSR matrices are made here alone, without torch's warnings about them. Products with several columns
are computed by our own compiled code where there is some: torch gives them to MKL, which takes
about three times as long for the 64 columns of a layer.

Vectors are numpy arrays on the CPU and tensors on CUDA, by the same code: calls of numpy take a
third of the time of torch's where vectors are short, and balancing uses only functions that have
the same name in both.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .kernels import CSRArrays, kernels

#: The widest that a processor reads at once, at which torch's own memory begins.
_ALIGNMENT = 64
#: Bytes of a row under which there is nothing to gain, and which the compiled code needs.
_NARROW = 64
#: A numpy array or a torch tensor.
Array = Any


def aligned(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy if it does not begin at a multiple of 64 bytes.

    The memory of numpy arrays and of parts of other tensors begins anywhere, and the last bits of
    MKL's sums may depend on it. Torch's own always begins at such a multiple.
    """
    is_aligned = tensor.device.type != "cpu" or tensor.data_ptr() % _ALIGNMENT == 0
    return tensor if is_aligned else tensor.clone()


def csr_tensor(crow: Tensor, columns: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    """Make a CSR matrix of its arrays, which must be consistent."""
    return torch.sparse_csr_tensor(
        crow, columns, aligned(values), tuple(shape), check_invariants=False
    )


def csr_from_entries(row: Tensor, column: Tensor, value: Tensor, shape: Sequence[int]) -> Tensor:
    """Make a CSR matrix with 32-bit indices, for faster products, of unique entries."""
    order = (row * shape[1] + column).argsort()
    crow = torch.zeros(shape[0] + 1, dtype=torch.long, device=row.device)
    torch.cumsum(torch.bincount(row, minlength=shape[0]), 0, out=crow[1:])
    return csr_tensor(crow.int(), column[order].int(), value[order], shape)


def csr_entries(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows, columns and values of a CSR matrix."""
    counts = matrix.crow_indices().diff().long()
    row = torch.repeat_interleave(torch.arange(len(counts), device=matrix.device), counts)
    return row, matrix.col_indices().long(), matrix.values()


def row_spans(row_start: Tensor, entries: int) -> list[tuple[int, int]]:
    """Return ranges of the rows of a CSR matrix with about so many entries each, or one row."""
    first, last = row_start[[0, -1]].tolist()
    wanted = torch.arange(first, last, entries, dtype=row_start.dtype, device=row_start.device)
    cuts = {0, *torch.searchsorted(row_start, wanted).tolist(), len(row_start) - 1}
    return list(pairwise(sorted(cuts)))


class SparseProduct:
    """Products with one CSR matrix, by compiled code where there is some."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix
        self._stored = CSRArrays(matrix.crow_indices(), matrix.col_indices(), matrix.values())
        self._compiled = kernels() if self._stored.usable else None

    def __call__(self, right: Tensor, out: Tensor) -> Tensor:
        """Write matrix @ right to ``out``, without a gradient."""
        if self._compiled is not None and self._suits(right, out):
            self._compiled.wide_product(self._stored, right, out)
            return out
        return torch.addmm(out, self._matrix, right, beta=0, out=out)

    def _suits(self, right: Tensor, out: Tensor) -> bool:
        (rows, columns), width = self._matrix.shape, right.shape[-1]
        fitting = right.shape == (columns, width) and out.shape == (rows, width)
        alike = right.dtype == out.dtype == self._matrix.dtype
        wide = width * right.element_size() >= _NARROW
        return fitting and alike and wide and right.is_contiguous() and out.is_contiguous()


def array_module(device: torch.device) -> ModuleType:
    """Return the module (numpy or torch) whose functions take the arrays of that device."""
    return np if device.type == "cpu" else torch


def as_array(tensor: Tensor) -> Array:
    """Return an array of the device's module on the same memory."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def as_tensor(array: Array) -> Tensor:
    """Return a tensor on the same memory."""
    return array if isinstance(array, Tensor) else torch.from_numpy(array)


def empty_array(
    shape: tuple[int, ...], device: torch.device, dtype: torch.dtype = torch.float64
) -> Array:
    """Return an uninitialized array, on the CPU in memory that numpy allocated.

    Numpy asks the system for large pages, torch does not; a product that reads a vector of millions
    of numbers in random order would otherwise wait for page addresses more than for the numbers.

    It begins at a multiple of 64 bytes: a compiler may add up the numbers before such an address
    separately, and the sum's last bits would then depend on the address.
    """
    if device.type == "cpu":
        count = math.prod(shape)
        width = _ALIGNMENT // dtype.itemsize
        room = np.empty(count + width, dtype=str(dtype).removeprefix("torch."))
        start = -(room.ctypes.data // room.itemsize) % width
        return room[start : start + count].reshape(shape)
    return torch.empty(shape, dtype=dtype, device=device)


def dot(x: Array, y: Array) -> float:
    """Return xᵀ y, on the CPU with the same bits for any number of threads and any address.

    BLAS splits a long sum between threads, so its bits depend on their number.
    """
    return float((x * y).sum())


# Torch warns once in every process that CSR tensors are in beta and that their invariants are not
# checked. Users cannot act on either: raise both warnings here, where they are ignored.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1)).t().to_sparse_csr()
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
