"""What kind of matrix it is: symmetric or not, and whether a doubly stochastic form exists."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.kernels import Found, Stored, kernels
from .._core.vectors import array, empty, library, tensor
from .products import Product, SparseMatrix

_NAMED = 5
_RANDOM = np.random.PCG64(20220430)


def inspect(matrix: SparseMatrix) -> tuple[Tensor, bool]:
    """The stored diagonal in float64, zero where no entry is stored; and whether M equals Mᵀ.

    Symmetry is told to the last bit, without a transpose, by a random fingerprint: a transpose
    would take as much memory as the matrix and as much time as a dozen products. Every entry
    (i, j, m) adds ± k_i k_j h(m) to a sum modulo 2⁶⁴, with the sign of i − j, a random key k for
    each node and a hash h of the bits of m. For a matrix of ones, without compiled passes, it is
    gᵀ M h = hᵀ M g for random vectors of integers, so small that M g and M h are exact in float64,
    the rest modulo 2⁶⁴. Both hold exactly for a symmetric matrix; another passes with a chance of
    about 2⁻⁴⁰ (the more bits of 52 a hub's degree leaves, the less).
    """
    found = matrix.found or inspected(matrix.stored)
    if found is not None:
        return found.diagonal, found.symmetric
    values = matrix.values
    same = _same_form(matrix) if values is None else _same_entries(matrix, values)
    return _diagonal_of(matrix), same


def inspected(matrix: Stored) -> Found | None:
    """What the compiled inspection finds; None where there is none for it, or it is damaged."""
    fast = kernels() if matrix.usable else None
    return fast.inspect(matrix, int(_RANDOM.random_raw())) if fast else None


def _diagonal_of(matrix: SparseMatrix) -> Tensor:
    diagonal = torch.zeros(matrix.size, dtype=torch.float64, device=matrix.device)
    for first, last in matrix.row_blocks(_block(matrix)):
        start, stop = int(matrix.row_start[first]), int(matrix.row_start[last])
        loop = array(matrix.rows(first, last)) == array(matrix.column[start:stop])
        count = int(library(matrix.device).count_nonzero(loop))
        if matrix.values is None and count == last - first:
            diagonal[first:last] = 1
        elif count:
            at = tensor(library(matrix.device).argwhere(loop))[:, 0] + start
            entries = 1.0 if matrix.values is None else matrix.values[at].double()
            diagonal[matrix.column[at].long()] = entries
    return diagonal


def _same_entries(matrix: SparseMatrix, values: Tensor) -> bool:
    key = _keys(matrix, 1)[0].bitwise_or_(1)
    total = torch.zeros((), dtype=torch.int64, device=matrix.device)
    for first, last in matrix.row_blocks(_block(matrix)):
        start, stop = matrix.row_start[[first, last]].tolist()
        row, column = matrix.rows(first, last), matrix.column[start:stop]
        term = key.index_select(0, row)
        term *= key.index_select(0, column)
        term *= (row - column).sign_()
        term *= hash_of(values[start:stop])
        total += term.sum()
    return int(total) == 0


def _same_form(matrix: SparseMatrix) -> bool:
    product = Product(matrix)
    largest = int(array(matrix.degree).max()) + 1
    keys = array(_keys(matrix, 2))
    keys >>= 11 + largest.bit_length()
    images = empty((2, matrix.size), matrix.device)
    vector = empty((matrix.size,), matrix.device)
    for key, image in zip(keys, images, strict=True):
        vector[:] = key
        product(tensor(vector), tensor(image))
    # Beyond 2⁶³ these sums start again from below, as they should.
    one, other = (
        (key * array(tensor(image).long())).sum()
        for key, image in zip(keys, reversed(list(images)), strict=True)
    )
    return bool(one == other)


def _keys(matrix: SparseMatrix, each: int) -> Tensor:
    """63 random bits, a few times for each node."""
    bits = _RANDOM.random_raw((each, matrix.size)) >> np.uint64(1)
    return torch.from_numpy(bits.view(np.int64)).to(matrix.device)


def _block(matrix: SparseMatrix) -> int:
    return 1 << 18 if matrix.device.type == "cpu" else 1 << 26


def hash_of(values: Tensor) -> Tensor:
    """64 well-mixed bits of each number (the finaliser of splitmix64)."""
    bits = values.double().view(torch.int64).clone()
    bits ^= bits >> 30
    bits *= -0x40A7B892E31B1A47
    bits ^= bits >> 27
    bits *= -0x6B2FB644ECCEEE15
    return bits ^ (bits >> 31)


def require_support(matrix: SparseMatrix, symmetric: bool, diagonal: Tensor) -> None:
    """Refuse a matrix without total support, naming the rows and columns at fault.

    A nonnegative matrix can be balanced exactly when every positive entry lies on a positive
    diagonal, that is, is used by some perfect matching of rows with columns (Sinkhorn and Knopp
    1967). A symmetric matrix with a positive diagonal always can: (i, j) lies on the diagonal that
    swaps i and j and leaves the rest alone.
    """
    full_diagonal = matrix.loops or float(array(diagonal).min()) > 0
    if symmetric and full_diagonal:
        return
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    starts, column = matrix.row_start.cpu().numpy(), matrix.column.cpu().numpy()
    n = matrix.size
    pattern = csr_array((np.ones(len(column), dtype=np.int8), column, starts), shape=(n, n))
    if full_diagonal:
        partner = np.arange(n)
    else:
        _refuse_empty(starts, column, n)
        partner = maximum_bipartite_matching(pattern, perm_type="column")
        if (partner < 0).any():
            _refuse_deficient(pattern, partner)
    # With each column named after its partner row, an entry i → j lies on a positive diagonal
    # exactly when it lies on a cycle, that is, within one strongly connected component.
    row_of = np.empty(n, dtype=column.dtype)
    row_of[partner] = np.arange(n)
    graph = csr_array((pattern.data, row_of[column], starts), shape=(n, n))
    _, part = connected_components(graph, directed=True, connection="strong")
    row = np.repeat(np.arange(n), np.diff(starts))
    across = np.flatnonzero(part[row] != part[row_of[column]])
    if len(across):
        some = ", ".join(f"({row[e]}, {column[e]})" for e in across[:_NAMED])
        raise RawlsError(
            f"the matrix has no doubly stochastic form: {len(across)} of its entries lie on no "
            f"positive diagonal (row, column: {some}{_dots(across)}), so no scaling can keep "
            "them; remove them, or balance a symmetric matrix with self-loops."
        )


def _refuse_empty(starts: Any, column: Any, n: int) -> None:
    filled = np.zeros(n, dtype=bool)
    filled[column] = True
    for what, lost in (
        ("row", np.flatnonzero(np.diff(starts) == 0)),
        ("column", np.flatnonzero(~filled)),
    ):
        if len(lost):
            raise RawlsError(
                f"the matrix has no doubly stochastic form: {_names(what, lost)} "
                f"{'has' if len(lost) == 1 else 'have'} no positive entry; "
                "add self-loops or leave these nodes out."
            )


def _refuse_deficient(pattern: Any, partner: Any) -> None:
    """Name rows that together have too few columns (a violation of Hall's condition)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n = len(partner)
    row_of = np.full(n, -1)
    matched = np.flatnonzero(partner >= 0)
    row_of[partner[matched]] = matched
    row = np.repeat(np.arange(n), np.diff(pattern.indptr))
    target = row_of[pattern.indices]
    usable = target >= 0
    graph = csr_array(
        (np.ones(usable.sum(), dtype=np.int8), (row[usable], target[usable])), shape=(n, n)
    )
    unmatched = int(np.flatnonzero(partner < 0)[0])
    rows = np.sort(breadth_first_order(graph, unmatched, return_predecessors=False))
    columns = np.unique(pattern[rows].indices)
    raise RawlsError(
        f"the matrix has no doubly stochastic form: {_names('row', rows)} have entries only in "
        f"{_names('column', columns)}, which cannot give each of these rows a sum of 1; "
        "add self-loops or leave these nodes out."
    )


def _names(what: str, ids: Any) -> str:
    if len(ids) == 1:
        return f"{what} {ids[0]}"
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{what}s {', '.join(map(str, ids[:_NAMED]))}{more} ({len(ids)} in all)"


def _dots(ids: Any) -> str:
    return ", …" if len(ids) > _NAMED else ""
