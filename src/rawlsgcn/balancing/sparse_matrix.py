"""Products with a sparse matrix, limited by memory traffic and arranged to cause little of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.kernels import CSRArrays, Kernels, MatrixInspection, kernels
from .._core.sparse import as_array, csr_tensor, dot, row_spans

#: Nonzeros in a block. On the CPU its values (2 MB in float64) stay in the cache between blocks.
_CPU_BLOCK = 1 << 18
_CUDA_BLOCK = 1 << 28


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A square matrix in CSR form with 32-bit indices, columns sorted and unique in each row.

    ``values`` is None for a matrix of ones. With ``loops`` the matrix is this one plus I, of
    which the identity is never stored. ``inspection`` is known where compiled code has read it.
    """

    row_start: Tensor
    column: Tensor
    values: Tensor | None
    loops: bool
    inspection: MatrixInspection | None = None

    @property
    def size(self) -> int:
        return len(self.row_start) - 1

    @property
    def device(self) -> torch.device:
        return self.column.device

    @cached_property
    def degree(self) -> Tensor:
        """The number of stored entries of each row."""
        return self.row_start.diff()

    @property
    def stored(self) -> CSRArrays:
        """The stored entries, for compiled code."""
        return CSRArrays(self.row_start, self.column, self.values)

    @property
    def fast(self) -> Kernels | None:
        """The compiled kernels, where there are any for this matrix."""
        return kernels() if self.stored.usable else None

    def rows(self, start: int = 0, stop: int | None = None) -> Tensor:
        """The row of each stored entry, of the rows ``start`` to ``stop``."""
        stop = self.size if stop is None else stop
        lengths = self.degree[start:stop]
        row = torch.arange(start, stop, dtype=self.column.dtype, device=self.device)
        if self.device.type == "cpu":
            # A tenth of the time that torch's own takes.
            return torch.from_numpy(np.repeat(row.numpy(), lengths.numpy()))
        return row.repeat_interleave(lengths)

    def entries(self, start: int, stop: int) -> Tensor:
        """The float64 values of the stored entries ``start`` to ``stop``."""
        if self.values is None:
            return torch.ones(stop - start, dtype=torch.float64, device=self.device)
        return self.values[start:stop].double()

    def row_blocks(self, nonzeros: int | None = None) -> list[tuple[int, int]]:
        """Ranges of rows of about that many nonzeros each, or of one longer row."""
        if nonzeros is None:
            nonzeros = _CPU_BLOCK if self.device.type == "cpu" else _CUDA_BLOCK
        return row_spans(self.row_start, nonzeros)


def with_stored_loops(matrix: SparseMatrix) -> SparseMatrix:
    """The same matrix with its self-loops among the stored entries, each in its sorted place."""
    if not matrix.loops:
        return matrix
    row, node = matrix.rows(), torch.arange(matrix.size + 1, device=matrix.device)
    after = matrix.column > row
    before = torch.bincount(row[~after], minlength=matrix.size)
    # An entry moves on by one for each row above it, and by one more if its own loop precedes it.
    place = torch.arange(len(row), device=matrix.device) + row + after
    loop = matrix.row_start[:-1] + node[:-1] + before
    total = len(row) + matrix.size
    column = torch.empty(total, dtype=torch.int32, device=matrix.device)
    column[place] = matrix.column
    column[loop] = node[:-1].int()
    values = matrix.values
    if values is not None:
        filled = torch.ones(total, dtype=values.dtype, device=matrix.device)
        filled[place] = values
        values = filled
    return SparseMatrix(matrix.row_start + node.int(), column, values, loops=False)


def without_diagonal(matrix: SparseMatrix) -> SparseMatrix:
    """The matrix without its stored diagonal."""
    row = matrix.rows()
    keep = row != matrix.column
    starts = torch.zeros_like(matrix.row_start)
    torch.cumsum(torch.bincount(row[keep], minlength=matrix.size), 0, out=starts[1:])
    values = None if matrix.values is None else matrix.values[keep]
    return SparseMatrix(starts, matrix.column[keep], values, matrix.loops)


def transposed(matrix: SparseMatrix) -> SparseMatrix:
    """Mᵀ, by a stable sort of the entries by column."""
    order = torch.argsort(matrix.column, stable=True)
    starts = torch.zeros_like(matrix.row_start)
    torch.cumsum(torch.bincount(matrix.column, minlength=matrix.size), 0, out=starts[1:])
    values = None if matrix.values is None else matrix.values[order]
    return SparseMatrix(starts, matrix.rows()[order], values, matrix.loops)


class Product:
    """y = M x in float64, by a compiled kernel where there is one, otherwise block by block.

    A block is a CSR matrix of some rows whose index arrays are views of the matrix's. Values that
    are not float64 are made so in a buffer the size of one block: a matrix of ones has no other
    value array, which takes two thirds of the memory traffic away, and float32 weights are never
    copied whole. The compiled kernel needs no values of ones at all.

    On the CPU a block is multiplied by scipy, which adds a row up from its first entry to its last.
    MKL's order depends on the number of threads and on where the numbers lie in memory.
    """

    def __init__(self, matrix: SparseMatrix) -> None:
        self._loops, fast = matrix.loops, matrix.fast
        self._compiled = fast and fast.multiplication(matrix.stored, matrix.loops)
        if not self._compiled:
            self._cut(matrix)

    def _cut(self, matrix: SparseMatrix) -> None:
        self._blocks: list[tuple[int, int, BlockProduct, Tensor | None]] = []
        spans = matrix.row_blocks()
        starts = [int(matrix.row_start[first]) for first, _ in spans] + [len(matrix.column)]
        shared = torch.float64 != getattr(matrix.values, "dtype", None)
        longest = max(b - a for a, b in pairwise(starts)) if shared else 0
        self._buffer = torch.ones(longest, dtype=torch.float64, device=matrix.device)
        for (first, last), (a, b) in zip(spans, pairwise(starts), strict=True):
            own = None if matrix.values is None else matrix.values[a:b]
            values = self._buffer[: b - a] if shared or own is None else own
            row_start = matrix.row_start[first : last + 1]
            block = BlockProduct(
                row_start - a if a else row_start, matrix.column[a:b], values, matrix.size
            )
            self._blocks.append((first, last, block, own if shared else None))

    def __call__(self, x: Tensor, out: Tensor) -> float:
        """Write M x to ``out``; the result is xᵀ M x."""
        if self._compiled:
            return self._compiled(x, x, out)
        for first, last, block, weights in self._blocks:
            if weights is not None:
                self._buffer[: len(weights)] = weights
            block(x, out[first:last])
        if self._loops:
            out += x
        return dot(as_array(x), as_array(out))


class BlockProduct:
    """Products with some rows of a matrix, without a copy of its entries."""

    def __init__(self, row_start: Tensor, column: Tensor, values: Tensor, columns: int) -> None:
        shape = (len(row_start) - 1, columns)
        self._matrix: Any
        if column.device.type != "cpu":
            self._matrix = csr_tensor(row_start, column, values, shape)
            return
        from scipy.sparse import csr_array

        self._matrix = csr_array(shape)
        # Scipy's constructor would copy such views.
        self._matrix.indptr, self._matrix.indices = row_start.numpy(), column.numpy()
        self._matrix.data = values.numpy()

    def __call__(self, x: Tensor, out: Tensor) -> None:
        """Write the rows' products with x to ``out``."""
        if isinstance(self._matrix, Tensor):
            torch.mv(self._matrix, x, out=out)
        else:
            out.numpy()[:] = self._matrix @ x.numpy()
