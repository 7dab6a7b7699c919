"""Torch's CSR matrices, made in one place and without torch's warnings about them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

#: The widest that a processor reads at once, at which torch's own memory begins.
_ALIGNMENT = 64


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


# Torch warns once in every process that CSR tensors are in beta and that their invariants are not
# checked. Users cannot act on either: raise both warnings here, where they are ignored.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1)).t().to_sparse_csr()
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
