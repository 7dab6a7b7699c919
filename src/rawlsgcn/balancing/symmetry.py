"""Whether a matrix is symmetric, by a random fingerprint, and its stored diagonal."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .._core.kernels import CSRArrays, MatrixInspection, kernels
from .sparse_matrix import SparseMatrix

_RANDOM = np.random.PCG64(20220430)


def inspect_matrix(matrix: SparseMatrix) -> tuple[Tensor, bool]:
    """Return the stored diagonal in float64, zero where no entry is stored, and whether M = Mᵀ.

    Symmetry is decided to the last bit, without a transpose, by a random fingerprint: a transpose
    would take as much memory as the matrix and as much time as a dozen products. Every entry
    (i, j, m) adds ± k_i k_j h(m) to a sum modulo 2⁶⁴, with the sign of i − j, a random odd key k
    for each node and a hash h of the bits of m, which is left out for a matrix of ones. The sum is
    zero for a symmetric matrix; for another one with a probability below 2⁻⁵⁰.
    """
    known = matrix.inspection or compiled_inspection(matrix.stored)
    if known is not None:
        return known.diagonal, known.symmetric
    bits = _RANDOM.random_raw(matrix.size) | np.uint64(1)
    key = torch.from_numpy(bits.view(np.int64)).to(matrix.device)
    diagonal = torch.zeros(matrix.size, dtype=torch.float64, device=matrix.device)
    total = torch.zeros((), dtype=torch.int64, device=matrix.device)
    for first, last in matrix.row_blocks(1 << 18 if matrix.device.type == "cpu" else 1 << 26):
        start, stop = matrix.row_start[[first, last]].tolist()
        row, column = matrix.rows(first, last), matrix.column[start:stop]
        loop = (row == column).nonzero()[:, 0]
        diagonal[column[loop].long()] = matrix.entries(start, stop)[loop]
        values = None if matrix.values is None else matrix.values[start:stop]
        total += asymmetry(key, row, column, values)
    return diagonal, int(total) == 0


def asymmetry(key: Tensor, row: Tensor, column: Tensor, values: Tensor | None) -> Tensor:
    """Return the sum of ± k_i k_j h(m) over some entries, modulo 2⁶⁴."""
    term = key.index_select(0, row)
    term *= key.index_select(0, column)
    term *= (row - column).sign_()
    if values is not None:
        term *= _hash_bits(values)
    return term.sum()


def compiled_inspection(matrix: CSRArrays) -> MatrixInspection | None:
    """Inspect a matrix by compiled code; None without such code, or if the matrix is damaged."""
    fast = kernels() if matrix.usable else None
    return fast.inspect(matrix, int(_RANDOM.random_raw())) if fast else None


def _hash_bits(values: Tensor) -> Tensor:
    """64 well-mixed bits of each number (the finalizer of splitmix64)."""
    bits = values.double().view(torch.int64).clone()
    bits ^= bits >> 30
    bits *= -0x40A7B892E31B1A47
    bits ^= bits >> 27
    bits *= -0x6B2FB644ECCEEE15
    return bits ^ (bits >> 31)
