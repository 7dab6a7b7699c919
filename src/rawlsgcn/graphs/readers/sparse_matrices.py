"""Sparse matrices of parts that somebody else wrote: every index is checked before it is used.

scipy, torch and compiled code follow the indices of a matrix without looking, and read or write
foreign memory where they are wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._core.errors import RawlsError

Array = NDArray[Any]
FREE_ROWS = 1 << 22
"""Rows that a matrix, or nodes that a graph, may have whatever is stored of them."""
ROWS_AN_ENTRY = 64
"""Beyond that, how many there may be for each entry that is stored."""


def plausible(rows: int, stored: int) -> bool:
    """Whether so many rows may be meant where so little is stored of them.

    A single number in a file could otherwise fill the memory.
    """
    return rows <= max(FREE_ROWS, ROWS_AN_ENTRY * stored)


def shape_of(array: Array) -> tuple[int, int]:
    """The two sizes that a file keeps as an array."""
    if array.shape != (2,) or array.dtype.kind not in "iu":
        raise RawlsError(f"has a shape of {array.dtype} {array.shape} instead of two integers")
    rows, columns = int(array[0]), int(array[1])
    if rows < 0 or columns < 0 or max(rows, columns) >= 2**62:
        raise RawlsError(f"has a matrix of {rows} rows and {columns} columns")
    return rows, columns


def csr(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    """A CSR matrix."""
    return _compressed(sp.csr_matrix, data, indices, indptr, shape)


def csc(data: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Any:
    """A CSC matrix."""
    _require_rows(shape[0], len(data) if data.ndim else 0)
    return _compressed(sp.csc_matrix, data, indices, indptr, shape)


def coo(data: Array, row: Array, column: Array, shape: tuple[int, int]) -> Any:
    """A COO matrix."""
    data = _values(data)
    _require_rows(shape[0], len(data))
    for name, index, size in (("row", row, shape[0]), ("column", column, shape[1])):
        if index.shape != data.shape:
            raise RawlsError(f"has a {name} of the shape {index.shape} for {len(data)} entries")
        _require_range(index, size, name)
    return sp.coo_matrix((data, (row.astype(np.int64), column.astype(np.int64))), shape=shape)


def sound(matrix: Any) -> Any:
    """A scipy matrix in CSR, CSC or COO form, its indices checked; other forms are refused."""
    if matrix.format in ("csr", "csc"):
        make = csr if matrix.format == "csr" else csc
        return make(matrix.data, matrix.indices, matrix.indptr, matrix.shape)
    if matrix.format == "coo":
        return coo(matrix.data, matrix.row, matrix.col, matrix.shape)
    raise RawlsError(unread(matrix.format))


def unread(form: str) -> str:
    """Why a matrix in another form is not read."""
    return f"has a matrix in {form} form: save it in CSR form (matrix.tocsr())"


def _compressed(
    kind: Any, data: Array, indices: Array, indptr: Array, shape: tuple[int, int]
) -> Any:
    data = _values(data)
    major, minor = shape if kind is sp.csr_matrix else shape[::-1]
    if indices.shape != data.shape:
        raise RawlsError(f"has indices of the shape {indices.shape} for {len(data)} entries")
    if indptr.dtype.kind not in "iu" or indptr.shape != (major + 1,):
        raise RawlsError(
            f"has an indptr of {indptr.dtype} {indptr.shape}: for this matrix it must be "
            f"{major + 1} integers"
        )
    if (
        int(indptr[0]) != 0
        or int(indptr[-1]) != len(data)
        or bool((indptr[1:] < indptr[:-1]).any())
    ):
        raise RawlsError(
            f"has an indptr that does not rise from 0 to the number of entries, {len(data)}"
        )
    _require_range(indices, minor, "column" if kind is sp.csr_matrix else "row")
    parts = (data, indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False))
    return kind(parts, shape=shape)


def _values(data: Array) -> Array:
    if data.ndim != 1 or data.dtype.kind not in "biufc":
        raise RawlsError(f"has entries of {data.dtype} {data.shape} instead of a list of numbers")
    return data.astype(np.float32) if data.dtype == np.float16 else data  # scipy has no halves


def _require_rows(rows: int, stored: int) -> None:
    if not plausible(rows, stored):
        raise RawlsError(
            f"has a matrix of {rows:,} rows with {stored:,} entries, too empty to read"
        )


def _require_range(index: Array, size: int, name: str) -> None:
    if index.dtype.kind not in "iu":
        raise RawlsError(f"has indices of {index.dtype}: they must be integers")
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < size):
        wrong = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise RawlsError(
            f"has a matrix in which the {name} {wrong} is out of range: it has {size:,} of them"
        )
