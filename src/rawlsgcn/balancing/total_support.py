"""Whether a matrix has a doubly stochastic form; if not, the rows and columns that prevent it."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from .._core.errors import RawlsError
from .._core.sparse import as_array
from .sparse_matrix import SparseMatrix

#: Rows and columns that a message names.
_NAMED = 5


def require_support(matrix: SparseMatrix, symmetric: bool, diagonal: Tensor) -> None:
    """Raise an error that names rows and columns for a matrix without total support.

    A nonnegative matrix can be balanced exactly when every positive entry lies on a positive
    diagonal, that is, is used by some perfect matching of rows with columns (Sinkhorn and Knopp
    1967). A symmetric matrix with a positive diagonal always can: (i, j) lies on the diagonal that
    swaps i and j and leaves the rest alone.
    """
    full_diagonal = matrix.loops or float(as_array(diagonal).min()) > 0
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
        some += ", …" if len(across) > _NAMED else ""
        raise RawlsError(
            f"the matrix has no doubly stochastic form: {len(across)} of its entries lie on no "
            f"positive diagonal (row, column: {some}), so no scaling can keep "
            "them; remove them, or balance a symmetric matrix with self-loops."
        )


def _refuse_empty(starts: Any, column: Any, n: int) -> None:
    for what, counts in ("row", np.diff(starts)), ("column", np.bincount(column, minlength=n)):
        lost = np.flatnonzero(counts == 0)
        if len(lost):
            raise RawlsError(
                f"the matrix has no doubly stochastic form: {_names(what, lost)} "
                f"{'has' if len(lost) == 1 else 'have'} no positive entry; "
                "add self-loops or remove these nodes."
            )


def _refuse_deficient(pattern: Any, partner: Any) -> None:
    """Name rows that together have too few columns (a violation of Hall's condition)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    matched = np.flatnonzero(partner >= 0)
    row_of = np.full(len(partner), -1)
    row_of[partner[matched]] = matched
    row = np.repeat(np.arange(len(partner)), np.diff(pattern.indptr))
    target = row_of[pattern.indices]
    usable = target >= 0
    entries = np.ones(usable.sum(), dtype=np.int8), (row[usable], target[usable])
    graph = csr_array(entries, shape=pattern.shape)
    unmatched = int(np.flatnonzero(partner < 0)[0])
    rows = np.sort(breadth_first_order(graph, unmatched, return_predecessors=False))
    columns = np.unique(pattern[rows].indices)
    raise RawlsError(
        f"the matrix has no doubly stochastic form: {_names('row', rows)} have entries only in "
        f"{_names('column', columns)}, which cannot give each of these rows a sum of 1; "
        "add self-loops or remove these nodes."
    )


def _names(what: str, ids: Any) -> str:
    if len(ids) == 1:
        return f"{what} {ids[0]}"
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{what}s {', '.join(map(str, ids[:_NAMED]))}{more} ({len(ids)} in all)"
