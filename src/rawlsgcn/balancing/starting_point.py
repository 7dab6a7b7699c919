"""Where the symmetric iteration starts: the exact answer for a random graph of these degrees.

In the random graph with given degrees (the configuration model) the neighbors of every node have
the same mean s of x, so that x_i solves m_ii x² + (d_i − m_ii) s x = 1, with d the row sums.
"""

from __future__ import annotations

import math

from .._core.sparse import Array, array_module
from .sparse_matrix import SparseMatrix

#: Nodes from which the mean of the first guess is estimated; it need not be exact.
_SAMPLE = 1 << 8


def write_starting_point(matrix: SparseMatrix, sums: Array, diagonal: Array, x: Array) -> None:
    """Write the starting point of a symmetric matrix to ``x``.

    Args:
        matrix: The matrix.
        sums: The sums of its rows.
        diagonal: Its diagonal.
        x: Where the point is written.
    """
    library = array_module(matrix.device)
    mean = _neighbor_mean(library, sums, diagonal)
    if matrix.fast is not None:
        matrix.fast.roots(sums, diagonal, mean, x)
        return
    linear = library.clip(sums - diagonal, 0, None)
    linear *= mean
    x[:] = 2 / (linear + library.sqrt(linear * linear + 4 * diagonal))


def _neighbor_mean(library: Array, sums: Array, diagonal: Array) -> float:
    """s with s = Σ o_i x_i / Σ o_i and m_ii x_i² + o_i s x_i = 1, where o = d − diag(M).

    By Newton's method in log s: an x_i falls with s as s^(−l / √(l² + 4 m_ii)), where l = o_i s.
    """
    every = max(1, len(sums) // _SAMPLE)
    outer = library.clip(sums[::every] - diagonal[::every], 0, None)
    diagonal = 4 * diagonal[::every]
    total = float(outer.sum())
    if not 0 < total < math.inf:
        return 0.0
    mean = math.sqrt(len(outer) / total)
    for _ in range(2):
        linear = outer * mean
        root = library.sqrt(linear * linear + diagonal)
        ends = 2 * outer / (linear + root)
        found = float(ends.sum())
        if not 0 < found < math.inf:
            break
        fall = float((ends * linear / root).sum()) / found
        mean *= (found / total / mean) ** (1 / (1 + fall))
    return mean
