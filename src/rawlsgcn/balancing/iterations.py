r"""The two fixed-point iterations behind ``balance``, as steps of a point (x, y = M x).

**Symmetric** (Knight, Ruiz and Uçar 2014; the damped form of Sinkhorn and Knopp 1967):
x ← x / √(x ∘ (M x)) = √(x / y). It is a majorise-minimise step for the energy
φ(x) = ½ xᵀ M x − Σ log x_i: with r = x ∘ (M x) and a new point x ∘ e^d,
½ Σ x_i m_ij x_j e^(d_i + d_j) ≤ ½ Σ r_i e^(2 d_i), and d = −½ log r, the step, makes the right side
less its Σ d_i least. So φ falls by at least ½ Σ (r_i − 1 − log r_i) each time, and the iteration
converges from any start.

**Sinkhorn-Knopp**, for any other matrix: c ← 1 / (Mᵀ r), r ← 1 / (M c). It is alternate
minimisation of the same energy for the symmetric matrix [[0, M], [Mᵀ, 0]], so the point
((r, c), (M c, Mᵀ r)) is accelerated by the same object.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from .products import Product, SparseMatrix

#: Nodes from which the mean of the first guess is estimated; it need not be exact.
_SAMPLE = 1 << 13


class Iteration(Protocol):
    """What the driver needs of an iteration.

    The last residual of each list is left to the driver (NaN), which computes it in any case.
    """

    size: int
    products: int

    def start(self, x: Tensor, y: Tensor) -> list[float]:
        """Write the first point; the result is the residual after each product spent."""

    def step(self, x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> list[float]:
        """Write the point after (x, y); the result is the residual after each product spent."""

    def measure(self, x: Tensor, y: Tensor) -> list[float]:
        """Write M x to ``y``; the result as above."""


class Symmetric:
    """x ← √(x / (M x)) for a symmetric M; one product a step."""

    products = 1

    def __init__(self, matrix: SparseMatrix, product: Product, diagonal: Tensor) -> None:
        self._product = product
        self._matrix = matrix
        self._diagonal = diagonal
        self.size = matrix.size

    def start(self, x: Tensor, y: Tensor) -> list[float]:
        """The exact answer for the random graph of these degrees (the configuration model).

        There the neighbours of every node have the same mean s of x, so that x_i solves
        m_ii x² + (d_i − m_ii) s x = 1, with d the row sums.
        """
        history = []
        if self._matrix.values is None:
            y.copy_(self._matrix.row_start.diff()).add_(int(self._matrix.loops))
        else:
            self._product(x.fill_(1.0), y)
            history.append(_residual(x, y))
        outer = y.sub_(self._diagonal).clamp_min_(0)
        mean = _neighbour_mean(outer, self._diagonal)
        outer *= mean
        torch.addcmul(4 * self._diagonal, outer, outer, out=x).sqrt_().add_(outer)
        x.reciprocal_().mul_(2)
        self._product(x, y)
        return [*history, _residual(x, y)]

    def step(self, x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> list[float]:
        torch.div(x, y, out=new_x).sqrt_()
        return self.measure(new_x, new_y)

    def measure(self, x: Tensor, y: Tensor) -> list[float]:
        self._product(x, y)
        return [math.nan]


class SinkhornKnopp:
    """c ← 1 / (Mᵀ r), r ← 1 / (M c); two products a step. A point is ((r, c), (M c, Mᵀ r))."""

    products = 2

    def __init__(self, matrix: SparseMatrix, product: Product) -> None:
        self._by_rows = product
        self._by_columns = Product(transposed(matrix))
        self._half = matrix.size
        self.size = 2 * matrix.size

    def start(self, x: Tensor, y: Tensor) -> list[float]:
        x.fill_(1.0)
        y.fill_(1.0)
        return self.step(x, y, x, y)

    def step(self, x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> list[float]:
        n = self._half
        torch.reciprocal(y[n:], out=new_x[n:])
        self._by_rows(new_x[n:], new_y[:n])
        # Here the columns of diag(r) M diag(c) sum to one, so only the rows can be off.
        rows = _residual(x[:n], new_y[:n])
        torch.reciprocal(new_y[:n], out=new_x[:n])
        self._by_columns(new_x[:n], new_y[n:])
        return [rows, math.nan]

    def measure(self, x: Tensor, y: Tensor) -> list[float]:
        n = self._half
        self._by_rows(x[n:], y[:n])
        rows = _residual(x[:n], y[:n])
        self._by_columns(x[:n], y[n:])
        return [rows, math.nan]


def _neighbour_mean(outer: Tensor, diagonal: Tensor) -> float:
    """s with s = Σ o_i x_i / Σ o_i and m_ii x_i² + o_i s x_i = 1, where o = d − diag(M)."""
    every = max(1, len(outer) // _SAMPLE)
    outer, diagonal = outer[::every], diagonal[::every]
    total = float(outer.sum())
    if total == 0:
        return 0.0
    mean = math.sqrt(len(outer) / total)
    for _ in range(8):
        linear = outer * mean
        x = 2 / (linear + (linear * linear + 4 * diagonal).sqrt())
        mean = math.sqrt(mean * float(outer @ x) / total)
    return mean


def transposed(matrix: SparseMatrix) -> SparseMatrix:
    """Mᵀ, by a stable sort of the entries by column."""
    order = torch.argsort(matrix.column, stable=True)
    starts = torch.zeros_like(matrix.row_start)
    torch.cumsum(torch.bincount(matrix.column, minlength=matrix.size), 0, out=starts[1:])
    values = None if matrix.values is None else matrix.values[order]
    return SparseMatrix(starts, matrix.rows()[order], values, matrix.loops)


def _residual(x: Tensor, y: Tensor) -> float:
    return float((x * y).sub_(1).abs_().max())
