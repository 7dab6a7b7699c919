r"""The two fixed-point iterations behind ``balance``, as relative steps of a point (x, y = M x).

**Symmetric**: with r = x ∘ (M x), x ← 2 x / (1 + r), so that 1 / x becomes the mean of itself and
of M x: the damped form of Sinkhorn and Knopp (1967), as x ← x / √r of Knight, Ruiz and Uçar (2014)
is. It, and any shorter step on the same side, lowers the energy φ(x) = ½ xᵀ M x − Σ log x_i from
any start (docs/balancing.md): φ(x ∘ e^d) − φ(x) ≤ Σ h(d_i) − h(0) with h(d) = ½ r e^(2d) − d.

**Sinkhorn-Knopp**, for any other matrix: c ← 1 / (Mᵀ r) and r ← 1 / (M c) in turn. It is alternate
minimization of the same energy for the symmetric matrix [[0, M], [Mᵀ, 0]] and the vector (r, c).

The symmetric iteration starts at the exact answer for a random graph of these degrees. In the
random graph with given degrees (the configuration model) the neighbors of every node have the same
mean s of x, so that x_i solves m_ii x² + (d_i − m_ii) s x = 1, with d the row sums.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor

from .._core.kernels import StepCoefficients, kernels
from .._core.sparse import Array, array_module, as_array, as_tensor
from .sparse_matrix import SparseMatrix, transposed

#: Nodes from which the mean of the first guess is estimated; it need not be exact.
_SAMPLE = 1 << 8


class Iteration(ABC):
    """The steps of a fixed-point iteration, as the descent uses them."""

    size: int
    #: Whether no step is longer than x.
    short: bool

    @abstractmethod
    def start(self, x: Array, y: Array) -> list[float]:
        """Write the first point; return the residual after each product, except the last."""

    @abstractmethod
    def step_coefficients(self) -> list[tuple[tuple[int, int], StepCoefficients]]:
        """Return the coefficients of the next step for one range of nodes after another."""

    @abstractmethod
    def product(self, p: Tensor, q: Tensor) -> float:
        """Write M p to ``q``, where p is the whole step last proposed; return pᵀ M p."""

    @abstractmethod
    def measure(self, x: Tensor, y: Tensor) -> int:
        """Write M x to ``y``; return the number of products."""

    def totals(self, *numbers: float) -> Sequence[float]:
        """Turn sums over this process's nodes into sums over all nodes; here these are the same."""
        return numbers

    def maxima(self, *numbers: float) -> Sequence[float]:
        """Do the same for maxima."""
        return numbers


class Symmetric(Iteration):
    """x ← 2 x / (1 + r) for a symmetric M; with ``jacobi`` the step is divided by 1 + m_ii x_i².

    1 + m_ii x_i² is the diagonal of the Hessian in relative terms at the solution: the Jacobi
    preconditioner of the accelerated iteration.
    """

    short = True

    def __init__(self, matrix: SparseMatrix, diagonal: Tensor, jacobi: bool) -> None:
        self._matrix, self._multiply = matrix, matrix.product()
        self._library = array_module(matrix.device)
        self._diagonal = as_array(diagonal)
        ends = self._diagonal.min(), self._diagonal.max()
        self._factor = 0.0 if not jacobi else 1.0 if ends == (1, 1) else self._diagonal
        self.size = matrix.size

    def start(self, x: Array, y: Array) -> list[float]:
        """Write the answer for a random graph, times what minimizes φ: n = xᵀ M x."""
        history = []
        if self._matrix.values is None:
            starts = as_array(self._matrix.row_start)
            self._library.subtract(starts[1:], starts[:-1], out=y)
            if self._matrix.loops:
                y += 1
        else:
            x[:] = 1
            self.product(as_tensor(x), as_tensor(y))
            history.append(_residual(x, y))
        self._write_first_point(y, x)
        energy = self.product(as_tensor(x), as_tensor(y))
        if energy > 0:
            x *= math.sqrt(self.size / energy)
            y *= math.sqrt(self.size / energy)
        return history

    def _write_first_point(self, sums: Array, x: Array) -> None:
        """Solve m_ii x² + (d_i − m_ii) s x = 1, given the row sums d."""
        mean = _neighbor_mean(self._library, sums, self._diagonal)
        fast = kernels() if self._matrix.stored.usable else None
        if fast is not None:
            fast.roots(sums, self._diagonal, mean, x)
            return
        linear = self._library.clip(sums - self._diagonal, 0, None)
        linear *= mean
        x[:] = 2 / (linear + self._library.sqrt(linear * linear + 4 * self._diagonal))

    def step_coefficients(self) -> list[tuple[tuple[int, int], StepCoefficients]]:
        return [((0, self.size), (2.0, self._factor))]

    def product(self, p: Tensor, q: Tensor) -> float:
        return self._multiply(p, q)

    def measure(self, x: Tensor, y: Tensor) -> int:
        self.product(x, y)
        return 1


class SinkhornKnopp(Iteration):
    """c ← 1 / (Mᵀ r), then r ← 1 / (M c); a product each. A point is ((r, c), (M c, Mᵀ r))."""

    short = False

    def __init__(self, matrix: SparseMatrix) -> None:
        self._by_rows, self._by_columns = matrix.product(), transposed(matrix).product()
        self._library = array_module(matrix.device)
        self._half, self.size = matrix.size, 2 * matrix.size
        self._columns = True

    def start(self, x: Array, y: Array) -> list[float]:
        n = self._half
        x[:] = 1
        self._by_rows(as_tensor(x[n:]), as_tensor(y[:n]))
        rows = _residual(x[:n], y[:n])
        x[:n] = 1 / y[:n]
        self._by_columns(as_tensor(x[:n]), as_tensor(y[n:]))
        return [rows]

    def step_coefficients(self) -> list[tuple[tuple[int, int], StepCoefficients]]:
        # The half whose turn it is not stays where it is.
        rows, columns = (math.inf, 1.0) if self._columns else (1.0, math.inf)
        n = self._half
        return [((0, n), (rows, 0.0)), ((n, 2 * n), (columns, 0.0))]

    def product(self, p: Tensor, q: Tensor) -> float:
        n = self._half
        if self._columns:
            self._by_rows(p[n:], q[:n])
            q[n:] = 0
        else:
            self._by_columns(p[:n], q[n:])
            q[:n] = 0
        self._columns = not self._columns
        return 0.0  # one half of p is zero, and the other half of q

    def measure(self, x: Tensor, y: Tensor) -> int:
        n = self._half
        self._by_rows(x[n:], y[:n])
        self._by_columns(x[:n], y[n:])
        return 2


def _residual(x: Array, y: Array) -> float:
    return float(abs(x * y - 1).max())


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
