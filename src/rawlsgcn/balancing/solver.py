"""``balance``: the doubly stochastic form of a graph or a matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from ..errors import RawlsError
from .anderson import Anderson
from .iterations import Iteration, SinkhornKnopp, Symmetric
from .products import Product, SparseMatrix
from .reading import Form, read, without_diagonal
from .scaling import Outcome, Scaling
from .structure import diagonal_of, is_symmetric, require_support

#: Steps remembered. A small graph's vectors lie in the cache, where many of them in full precision
#: cost little; on a large one each is one more pass over memory, and five bring most of the gain.
SMALL = 1 << 14
_ONE_THREAD = 1 << 17
DEPTH_SMALL, DEPTH_LARGE = 10, 5
#: Products without a gain of a tenth after which a residual this small is taken to be rounding.
_PATIENCE, _ROUNDING = 20, 1e-9


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
        accelerate: use Anderson acceleration; without it the plain iteration runs.

    Raises:
        RawlsError: for input that is no such matrix, and for a matrix without total support, which
            has no doubly stochastic form; the rows and columns at fault are named.
    """
    if not (isinstance(tol, Real) and math.isfinite(tol) and tol >= 0):
        raise RawlsError(f"tol must be a number of at least 0, not {tol!r}.")
    if not (isinstance(max_iterations, Integral) and max_iterations >= 2):
        raise RawlsError(
            f"max_iterations must be a whole number of at least 2, not {max_iterations!r}."
        )
    stored, form = read(matrix, edge_weight, num_nodes)
    with _threads_for(stored):
        return _balance(stored, form, self_loops, tol, max_iterations, accelerate)


@contextmanager
def _threads_for(matrix: SparseMatrix) -> Iterator[None]:
    """One thread for a small matrix: its vectors are handled sooner than a thread is woken."""
    threads = torch.get_num_threads()
    small = matrix.device.type == "cpu" and matrix.size <= _ONE_THREAD and threads > 1
    if small:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if small:
            torch.set_num_threads(threads)


def _balance(
    stored: SparseMatrix,
    form: Form,
    self_loops: bool | None,
    tol: float,
    max_iterations: int,
    accelerate: bool,
) -> Scaling:
    diagonal = diagonal_of(stored)
    if self_loops is None:
        self_loops = form.kind in ("edges", "numpy edges")
    if self_loops:
        if bool((diagonal != 0).any()):
            stored = without_diagonal(stored)
        stored = SparseMatrix(stored.row_start, stored.column, stored.values, loops=True)
        diagonal.fill_(1.0)
    product = Product(stored)
    symmetric = is_symmetric(stored, product)
    require_support(stored, symmetric, diagonal)

    iteration: Iteration
    if symmetric:
        iteration = Symmetric(stored, product, diagonal)
    else:
        iteration = SinkhornKnopp(stored, product)
    del diagonal
    small = iteration.size <= SMALL
    depth = (DEPTH_SMALL if small else DEPTH_LARGE) if accelerate else 0
    dtype = torch.float64 if small else torch.float32
    memory = Anderson(iteration.size, depth, dtype, stored.device)
    x, residual, history, reason = run(iteration, memory, tol, max_iterations)
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
        _form=form,
    )


def run(
    iteration: Iteration, memory: Anderson, tol: float, max_iterations: int
) -> tuple[Tensor, float, list[float], Outcome]:
    """The best point found, its residual, the residual after each product, and the reason."""
    x, y, mixed_x, mixed_y, best_x = (
        torch.empty(iteration.size, dtype=torch.float64, device=memory.device) for _ in range(5)
    )
    best_x.fill_(1.0)
    history = iteration.start(x, y)
    best, gained, gained_at = math.inf, math.inf, 0
    while True:
        estimate = memory.mix(x, y, mixed_x, mixed_y)
        residual = estimate + memory.error
        history[-1] = residual
        exhausted = len(history) + iteration.products > max_iterations
        if estimate <= tol < residual and not exhausted:
            history += iteration.measure(mixed_x, mixed_y)
            history[-1] = residual = memory.measured(mixed_x, mixed_y)
        if residual < best:
            best = residual
            best_x.copy_(mixed_x)
        if best <= tol:
            return best_x, best, history, Outcome.CONVERGED
        if not math.isfinite(residual):
            return best_x, best, history, Outcome.OVERFLOWED
        if residual <= 0.9 * gained:
            gained, gained_at = residual, len(history)
        stalled = len(history) - gained_at if gained < _ROUNDING else 0
        if stalled >= _PATIENCE:
            return best_x, best, history, Outcome.STAGNATED
        if stalled >= _PATIENCE // 2:
            # Steps this small are mostly rounding, and so is what is mixed from them.
            memory.forget()
        if len(history) + iteration.products > max_iterations:
            return best_x, best, history, Outcome.OUT_OF_ITERATIONS
        history += iteration.step(mixed_x, mixed_y, x, y)
        if memory.depth:
            memory.push(mixed_x, mixed_y, x, y)
