"""Products with a sparse matrix, limited by memory traffic and arranged to cause little of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.kernels import CSRArrays, MatrixInspection, kernels
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

    @property
    def stored(self) -> CSRArrays:
        """The stored entries, for compiled code."""
        return CSRArrays(self.row_start, self.column, self.values)

    def product(self) -> Product:
        """Prepare products with the matrix."""
        return Product(self.stored, self.loops, self.size)

    def rows(self, start: int = 0, stop: int | None = None) -> Tensor:
        """The row of each stored entry, of the rows ``start`` to ``stop``."""
        stop = self.size if stop is None else stop
        lengths = self.row_start[start : stop + 1].diff()
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

    Args:
        rows: Some rows of the matrix, or all; their starts need not begin at 0.
        loops: Whether M is the stored matrix plus I.
        columns: The number of columns.
        cuda_block: Nonzeros of a block on a GPU.
    """

    def __init__(
        self, rows: CSRArrays, loops: bool, columns: int, cuda_block: int = _CUDA_BLOCK
    ) -> None:
        self._loops, fast = loops, kernels() if rows.usable else None
        self._compiled = fast and fast.multiplication(rows, loops)
        if self._compiled:
            return
        row_start, column, values = rows
        on_cpu, origin = column.device.type == "cpu", int(row_start[0])
        spans = row_spans(row_start, _CPU_BLOCK if on_cpu else cuda_block)
        starts = [int(row_start[first]) - origin for first, _ in spans] + [len(column)]
        shared = values is None or values.dtype != torch.float64
        longest = max(b - a for a, b in pairwise(starts)) if shared else 0
        self._buffer = torch.ones(longest, dtype=torch.float64, device=column.device)
        self._blocks: list[tuple[int, int, Any, Tensor | None]] = []
        for (first, last), (a, b) in zip(spans, pairwise(starts), strict=True):
            own = None if values is None else values[a:b]
            numbers = self._buffer[: b - a] if shared or own is None else own
            inner = (row_start[first : last + 1] - (a + origin)).to(column.dtype), column[a:b]
            make = _scipy_view if on_cpu else csr_tensor
            block = make(*inner, numbers, (last - first, columns))
            self._blocks.append((first, last, block, own if shared else None))

    def __call__(self, x: Tensor, out: Tensor, own: Tensor | None = None) -> float:
        """Write M x to ``out``; the result is xᵀ M x, where ``own`` is the part of x for the rows.

        Args:
            x: The vector.
            out: The rows' products.
            own: By default x itself.
        """
        own = x if own is None else own
        if self._compiled:
            return self._compiled(x, own, out)
        for first, last, block, weights in self._blocks:
            if weights is not None:
                self._buffer[: len(weights)] = weights
            if isinstance(block, Tensor):
                torch.mv(block, x, out=out[first:last])
            else:
                out.numpy()[first:last] = block @ x.numpy()
        if self._loops:
            out += own
        return dot(as_array(own), as_array(out))


def _scipy_view(row_start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Any:
    """Return scipy's matrix of these very arrays, which its constructor would copy."""
    from scipy.sparse import csr_array

    matrix = csr_array(shape)
    matrix.indptr, matrix.indices = row_start.numpy(), column.numpy()
    matrix.data = values.numpy()
    return matrix
