"""``balance``: the doubly stochastic form of a graph or a matrix."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.threads import threads_for
from .accelerated_descent import Descent
from .iterations import Iteration, SinkhornKnopp, Symmetric
from .matrix_input import InputFormat, read_matrix
from .scaling import Scaling, StopReason
from .sparse_matrix import Product, SparseMatrix, without_diagonal
from .symmetry import inspect_matrix
from .total_support import require_support

#: Products without a gain of a tenth after which a residual this small is taken to be rounding.
_PATIENCE, _ROUNDING = 20, 1e-9
#: The share of a residual that may be rounding before all sums are made anew.
_SHARE = 0.1


def balance(
    matrix: Any,
    edge_weight: Any = None,
    *,
    num_nodes: int | None = None,
    self_loops: bool | None = None,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    accelerate: bool = True,
) -> Scaling:
    r"""Scale a nonnegative matrix M so that every row and every column sums to one.

    .. math:: \hat A_{DS} = \operatorname{diag}(r)\, M \operatorname{diag}(c)

    For symmetric M, r = c = x. The form is the same for Â as for A + I, of which it is a diagonal
    scaling, so a graph is balanced as A + I.

    Args:
        matrix: an edge index of shape (2, E) (tensor or array of integers), a scipy sparse matrix
            or array, or a torch sparse tensor (COO, CSR or CSC), on the CPU or on CUDA.
        edge_weight: weights of the edges of an edge index; all one by default.
        num_nodes: number of nodes of an edge index; its largest number plus one by default.
        self_loops: balance A + I, with stored loops dropped first, rather than the matrix as it
            is. By default true for an edge index, false for a matrix.
        tol: largest |sum − 1| of a row or column that counts as converged.
        max_iterations: products with M (or Mᵀ) after which to give up.
        accelerate: mix each step with the last displacement, by conjugate gradients; without it
            the plain iteration runs.

    Raises:
        RawlsError: for input that is no such matrix, and for a matrix without total support, which
            has no doubly stochastic form; the rows and columns at fault are named.
    """
    require_limits(tol, max_iterations)
    with threads_for(_entries(matrix)):
        stored, input_format = read_matrix(matrix, edge_weight, num_nodes)
        return _balance(stored, input_format, self_loops, tol, max_iterations, accelerate)


def require_limits(tol: float, max_iterations: int) -> None:
    """Refuse limits at which no iteration could end as it should."""
    if not (isinstance(tol, Real) and math.isfinite(tol) and tol >= 0):
        raise RawlsError(f"tol must be a number of at least 0, not {tol!r}.")
    if not (isinstance(max_iterations, Integral) and max_iterations >= 2):
        raise RawlsError(
            f"max_iterations must be a whole number of at least 2, not {max_iterations!r}."
        )


def _entries(matrix: Any) -> int:
    """How many entries or edges were given; what cannot be balanced is refused elsewhere."""
    if isinstance(matrix, Tensor):
        return matrix.numel() // 2 if matrix.layout == torch.strided else matrix._nnz()
    try:
        return int(getattr(matrix, "nnz", 0) or getattr(matrix, "size", 0) // 2)
    except IndexError:  # scipy looks for it at the end of what has none
        return 0


def _balance(
    stored: SparseMatrix,
    input_format: InputFormat,
    self_loops: bool | None,
    tol: float,
    max_iterations: int,
    accelerate: bool,
) -> Scaling:
    diagonal, symmetric = inspect_matrix(stored)
    if self_loops is None:
        self_loops = input_format.kind in ("edges", "numpy edges")
    if self_loops:
        if bool((diagonal != 0).any()):
            stored = without_diagonal(stored)
        diagonal.fill_(1.0)
    stored = SparseMatrix(stored.row_start, stored.column, stored.values, loops=bool(self_loops))
    require_support(stored, symmetric, diagonal)

    iteration: Iteration
    product = Product(stored)
    if symmetric:
        iteration = Symmetric(stored, product, diagonal, jacobi=accelerate)
    else:
        iteration = SinkhornKnopp(stored, product)
    descent = Descent(iteration, stored.device, accelerate)
    with np.errstate(all="ignore"):
        residual, history, reason = iterate(descent, tol, max_iterations)
    x = descent.best
    if not math.isfinite(residual):
        x.fill_(1.0)
    row_scale, col_scale = (x, x) if symmetric else (x[: stored.size], x[stored.size :])
    return Scaling(
        scale=x if symmetric else None,
        row_scale=row_scale,
        col_scale=col_scale,
        iterations=len(history),
        residual=residual,
        history=tuple(history),
        reason=reason,
        _matrix=stored,
        _format=input_format,
    )


def iterate(
    descent: Descent, tol: float, max_iterations: int
) -> tuple[float, list[float], StopReason]:
    """The residual of the best point, the residual after each product, and the reason to stop."""
    history = descent.begin()
    best, gained, gained_at = math.inf, math.inf, 0
    while True:
        doubtful = descent.residual <= tol < descent.residual + descent.error
        spoiled = descent.error > max(_ROUNDING, _SHARE * descent.residual)
        if (doubtful or spoiled) and len(history) + 2 <= max_iterations:
            spent = descent.measure()
            history += [descent.residual] * spent
        residual = history[-1] = descent.residual + descent.error
        if residual < best:
            best = residual
            descent.keep()
        if best <= tol:
            return best, history, StopReason.CONVERGED
        if not math.isfinite(residual):
            return best, history, StopReason.OVERFLOWED
        if residual <= 0.9 * gained:
            gained, gained_at = residual, len(history)
        stalled = len(history) - gained_at if gained < _ROUNDING else 0
        if stalled >= _PATIENCE:
            return best, history, StopReason.STAGNATED
        if len(history) >= max_iterations:
            return best, history, StopReason.OUT_OF_ITERATIONS
        descent.step()
        history.append(math.nan)
