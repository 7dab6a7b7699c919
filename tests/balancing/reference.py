"""The textbook, dense and in float64: what the balancing room is measured against."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def sinkhorn_knopp(matrix: np.ndarray, tol: float = 1e-12, limit: int = 200_000) -> np.ndarray:
    """diag(r) M diag(c) by alternate scaling of rows and columns (Sinkhorn and Knopp 1967)."""
    row, column = np.ones(len(matrix)), np.ones(len(matrix))
    for _ in range(limit):
        column = 1 / (matrix.T @ row)
        row = 1 / (matrix @ column)
        if np.abs(column * (matrix.T @ row) - 1).max() <= tol:
            break
    return row[:, None] * matrix * column


def off_by(matrix: np.ndarray) -> float:
    """max |sum − 1| over rows and columns."""
    return float(max(np.abs(matrix.sum(0) - 1).max(), np.abs(matrix.sum(1) - 1).max()))


@st.composite
def graphs(
    draw: st.DrawFn, weighted: bool | None = None, largest: int = 14
) -> tuple[np.ndarray, bool]:
    """A symmetric adjacency without loops: isolated nodes and several components among them."""
    n = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.05, 0.15, 0.4, 1.0]))
    if weighted is None:
        weighted = draw(st.booleans())
    upper = np.triu(rng.random((n, n)) < density, 1).astype(float)
    if weighted:
        upper *= 10.0 ** rng.uniform(-2, 2, (n, n))
    return upper + upper.T, weighted


def edges(adjacency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edge index and the weights of a dense adjacency."""
    index = np.stack(adjacency.nonzero())
    return index, adjacency[index[0], index[1]]


def shift_sum(n: int, rng: np.random.Generator, terms: int = 3) -> np.ndarray:
    """A directed matrix with total support: a positive sum of permutation matrices."""
    total = np.zeros((n, n))
    for _ in range(terms):
        total[np.arange(n), rng.permutation(n)] += rng.uniform(0.2, 2)
    scale = rng.uniform(0.3, 3, (2, n))
    return scale[0][:, None] * total * scale[1]
