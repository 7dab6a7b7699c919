"""Features divided by their row sums, as the paper's authors do, unless some are negative."""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.sparse import csr_tensor


def row_normalized(x: Tensor) -> Tensor:
    """Each row divided by its sum, taken in float64; a row whose sum is not positive stays."""
    if x.layout != torch.sparse_csr:
        return (x / row_sums(x)).to(x.dtype)
    counts = x.crow_indices().diff().long()
    rows = torch.repeat_interleave(torch.arange(len(counts), device=x.device), counts)
    sums = torch.zeros(len(counts), dtype=torch.float64, device=x.device)
    sums.index_add_(0, rows, x.values().double())
    sums[sums <= 0] = 1
    values = (x.values().double() / sums[rows]).to(x.dtype)
    return csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


def row_sums(x: Tensor) -> Tensor:
    """The sums that rows of a dense matrix are divided by, float64, of shape (rows, 1)."""
    sums = x.sum(1, keepdim=True, dtype=torch.float64)
    return sums.masked_fill_(sums <= 0, 1)
