"""Whether a matrix is symmetric, by a random fingerprint, and its stored diagonal."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .._core.kernels import CSRArrays, MatrixInspection, kernels
from .._core.sparse import as_array, as_tensor, empty_array
from .sparse_matrix import Product, SparseMatrix

_RANDOM = np.random.PCG64(20220430)


def inspect_matrix(matrix: SparseMatrix) -> tuple[Tensor, bool]:
    """Return the stored diagonal in float64, zero where no entry is stored, and whether M = Mᵀ.

    Symmetry is decided to the last bit, without a transpose, by a random fingerprint: a transpose
    would take as much memory as the matrix and as much time as a dozen products. Every entry
    (i, j, m) adds ± k_i k_j h(m) to a sum modulo 2⁶⁴, with the sign of i − j, a random key k for
    each node and a hash h of the bits of m. For a matrix of ones, without compiled kernels, it is
    gᵀ M h = hᵀ M g for random vectors of integers, so small that M g and M h are exact in float64,
    the rest modulo 2⁶⁴. Both hold exactly for a symmetric matrix; another one is accepted with
    a probability of about 2⁻⁴⁰ (the more bits of 52 a hub's degree leaves, the less).
    """
    known = matrix.inspection or compiled_inspection(matrix.stored)
    if known is not None:
        return known.diagonal, known.symmetric
    values = matrix.values
    same = _ones_are_symmetric(matrix) if values is None else _entries_are_symmetric(matrix, values)
    return _diagonal_of(matrix), same


def compiled_inspection(matrix: CSRArrays) -> MatrixInspection | None:
    """Inspect a matrix by compiled code; None without such code, or if the matrix is damaged."""
    fast = kernels() if matrix.usable else None
    return fast.inspect(matrix, int(_RANDOM.random_raw())) if fast else None


def _diagonal_of(matrix: SparseMatrix) -> Tensor:
    diagonal = torch.zeros(matrix.size, dtype=torch.float64, device=matrix.device)
    for first, last in matrix.row_blocks(_block(matrix)):
        start, stop = matrix.row_start[[first, last]].tolist()
        loop = matrix.rows(first, last) == matrix.column[start:stop]
        at = loop.nonzero()[:, 0] + start
        entries = 1.0 if matrix.values is None else matrix.values[at].double()
        diagonal[matrix.column[at].long()] = entries
    return diagonal


def _entries_are_symmetric(matrix: SparseMatrix, values: Tensor) -> bool:
    key = _keys(matrix, 1)[0].bitwise_or_(1)
    total = torch.zeros((), dtype=torch.int64, device=matrix.device)
    for first, last in matrix.row_blocks(_block(matrix)):
        start, stop = matrix.row_start[[first, last]].tolist()
        row, column = matrix.rows(first, last), matrix.column[start:stop]
        term = key.index_select(0, row)
        term *= key.index_select(0, column)
        term *= (row - column).sign_()
        term *= hash_bits(values[start:stop])
        total += term.sum()
    return int(total) == 0


def _ones_are_symmetric(matrix: SparseMatrix) -> bool:
    product = Product(matrix)
    largest = int(as_array(matrix.degree).max()) + 1
    keys = as_array(_keys(matrix, 2))
    keys >>= 11 + largest.bit_length()
    images = empty_array((2, matrix.size), matrix.device)
    vector = empty_array((matrix.size,), matrix.device)
    for key, image in zip(keys, images, strict=True):
        vector[:] = key
        product(as_tensor(vector), as_tensor(image))
    # These sums wrap around at 2⁶³, as they should.
    one, other = (
        (key * as_array(as_tensor(image).long())).sum()
        for key, image in zip(keys, reversed(list(images)), strict=True)
    )
    return bool(one == other)


def _keys(matrix: SparseMatrix, each: int) -> Tensor:
    """63 random bits, a few times for each node."""
    bits = _RANDOM.random_raw((each, matrix.size)) >> np.uint64(1)
    return torch.from_numpy(bits.view(np.int64)).to(matrix.device)


def _block(matrix: SparseMatrix) -> int:
    return 1 << 18 if matrix.device.type == "cpu" else 1 << 26


def hash_bits(values: Tensor) -> Tensor:
    """64 well-mixed bits of each number (the finalizer of splitmix64)."""
    bits = values.double().view(torch.int64).clone()
    bits ^= bits >> 30
    bits *= -0x40A7B892E31B1A47
    bits ^= bits >> 27
    bits *= -0x6B2FB644ECCEEE15
    return bits ^ (bits >> 31)
