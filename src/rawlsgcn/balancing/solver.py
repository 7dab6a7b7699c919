"""``balance``: the doubly stochastic form of a graph or a matrix, and whether there is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.threads import threads_for
from .accelerated_descent import Descent
from .iterations import Iteration, SinkhornKnopp, Symmetric
from .matrix_input import read_matrix
from .scaling import Convergence, Scaling, StopReason
from .sparse_matrix import without_diagonal
from .symmetry import inspect_matrix
from .total_support import require_support

#: Products without a gain of a tenth after which a residual this small is taken to be rounding.
_PATIENCE, _ROUNDING = 20, 1e-9
#: The share of a residual that may be rounding before all sums are computed again.
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

    For symmetric M, r = c = x (`Sinkhorn and Knopp 1967
    <https://msp.org/pjm/1967/21-2/p14.xhtml>`_). The form is the same for Â as for A + I, of which
    Â is a diagonal scaling, so a graph is balanced as A + I.

    Args:
        matrix: An edge index of shape (2, E) (tensor or array of integers), a scipy sparse matrix
            or array, or a torch sparse tensor (COO, CSR or CSC), on the CPU or on CUDA; or a graph,
            as a torch_geometric ``Data`` or a networkx graph, which is validated first: its edges
            count in both directions.
        edge_weight: Weights (E,) of the edges of an edge index; by default all are one.
        num_nodes: Number of nodes of an edge index; by default its largest node plus one.
        self_loops: Balance A + I, without the stored self-loops, instead of the matrix itself. By
            default true for an edge index, false for a matrix.
        tol: Largest ``|sum − 1|`` of a row or column that counts as converged.
        max_iterations: Maximum number of products with M (or Mᵀ).
        accelerate: Combine each step with the last displacement, by conjugate gradients; otherwise
            the plain iteration is used.

    Returns:
        The scaling: r and c, the residual, the reason to stop, and the balanced matrix.

    Raises:
        RawlsError: If the input is not such a matrix, or has no total support and so no doubly
            stochastic form; the message names the rows and columns.

    Example:
        >>> import torch
        >>> import rawlsgcn as rg
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> scaling = rg.balance(path, num_nodes=3)
        >>> scaling.converged, scaling.residual < 1e-8
        (True, True)
        >>> edge_index, edge_weight = scaling.matrix()  # with self-loops
        >>> edge_weight
        tensor([0.6180, 0.3820, 0.3820, 0.2361, 0.3820, 0.3820, 0.6180],
               dtype=torch.float64)
    """
    require_limits(tol, max_iterations)
    with threads_for(_entries(matrix)):
        stored, input_format = read_matrix(matrix, edge_weight, num_nodes)
        diagonal, symmetric = inspect_matrix(stored)
        if self_loops is None:
            self_loops = input_format in ("edges", "numpy edges")
        if self_loops:
            if bool((diagonal != 0).any()):
                stored = without_diagonal(stored)
            diagonal.fill_(1.0)
        stored = replace(stored, loops=bool(self_loops), inspection=None)
        require_support(stored, symmetric, diagonal)

        iteration: Iteration = (
            Symmetric(stored, diagonal, jacobi=accelerate) if symmetric else SinkhornKnopp(stored)
        )
        x, ended = iterate(iteration, stored.device, accelerate, tol, max_iterations)
        if not math.isfinite(ended.residual):
            x.fill_(1.0)
        row_scale, col_scale = (x, x) if symmetric else (x[: stored.size], x[stored.size :])
        return Scaling(
            scale=x if symmetric else None,
            row_scale=row_scale,
            col_scale=col_scale,
            _matrix=stored,
            _format=input_format,
            **vars(ended),
        )


def iterate(
    iteration: Iteration,
    device: torch.device,
    accelerate: bool,
    tol: float,
    max_iterations: int,
    report: Callable[[list[float]], None] = lambda history: None,
) -> tuple[Tensor, Convergence]:
    """Return the best point and why it is the last; the residuals so far go to ``report``."""
    with np.errstate(all="ignore"):
        descent = Descent(iteration, device, accelerate)
        history = descent.begin()
        reason, best, gained, gained_at = None, math.inf, math.inf, 0
        while reason is None:
            doubtful = descent.residual <= tol < descent.residual + descent.error
            spoiled = descent.error > max(_ROUNDING, _SHARE * descent.residual)
            if (doubtful or spoiled) and len(history) + 2 <= max_iterations:
                spent = descent.measure()
                history += [float(descent.residual)] * spent
            residual = history[-1] = float(descent.residual + descent.error)  # numpy has its own
            report(history)
            if residual < best:
                best = residual
                descent.keep()
            if residual <= 0.9 * gained:
                gained, gained_at = residual, len(history)
            if best <= tol:
                reason = StopReason.CONVERGED
            elif not math.isfinite(residual):
                reason = StopReason.OVERFLOWED
            elif gained < _ROUNDING and len(history) - gained_at >= _PATIENCE:
                reason = StopReason.STAGNATED
            elif len(history) >= max_iterations:
                reason = StopReason.OUT_OF_ITERATIONS
            else:
                descent.step()
                history.append(math.nan)
        return descent.best, Convergence(len(history), best, tuple(history), reason)


def require_limits(tol: float, max_iterations: int) -> None:
    """Raise an error for limits at which no iteration could end."""
    if not (isinstance(tol, Real) and math.isfinite(tol) and tol >= 0):
        raise RawlsError(f"tol must be a number of at least 0, not {tol!r}.")
    if not (isinstance(max_iterations, Integral) and max_iterations >= 2):
        raise RawlsError(
            f"max_iterations must be a whole number of at least 2, not {max_iterations!r}."
        )


def _entries(matrix: Any) -> int:
    """Return the number of entries or edges; invalid input raises its error elsewhere."""
    matrix = getattr(matrix, "edge_index", matrix)
    if isinstance(matrix, Tensor):
        return matrix.numel() // 2 if matrix.layout == torch.strided else matrix._nnz()
    try:
        return int(getattr(matrix, "nnz", 0) or getattr(matrix, "size", 0) // 2)
    except (IndexError, TypeError):  # scipy looks for it at the end of what has none
        return 0
