"""Torch's CSR matrices, made in one place and without torch's once-a-process warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor


def csr_tensor(crow: Tensor, columns: Tensor, values: Tensor, shape: Sequence[int]) -> Tensor:
    """A CSR matrix from its pieces, whose consistency the caller vouches for."""
    return torch.sparse_csr_tensor(crow, columns, values, tuple(shape), check_invariants=False)


# Torch says once in every process that CSR tensors are in beta and that their invariants are not
# checked. Neither is anything our users can act on: let it be said here, to nobody.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1)).t().to_sparse_csr()
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
