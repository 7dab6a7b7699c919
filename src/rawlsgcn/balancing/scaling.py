"""The answer of ``balance``: the scaling, how it was reached, and the balanced matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from .._core.sparse import csr_tensor
from .matrix_input import InputFormat
from .sparse_matrix import SparseMatrix, with_stored_loops


class StopReason(Enum):
    """How a balancing ended; the value is a sentence that says what to do next."""

    CONVERGED = "The row and column sums are within tol of 1; nothing is left to do."
    OUT_OF_ITERATIONS = (
        "The products ran out before the sums were within tol of 1; "
        "raise max_iterations or loosen tol."
    )
    STAGNATED = (
        "The sums stopped improving at the rounding of float64; this is the best scaling there "
        "is, so use it or loosen tol."
    )
    OVERFLOWED = (
        "The scaling left the range of float64; the entries span too many magnitudes, "
        "so rescale or clip the weights."
    )

    @property
    def message(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Scaling:
    """diag(``row_scale``) M diag(``col_scale``) is doubly stochastic (the paper's Â_DS).

    Attributes:
        scale: x with diag(x) M diag(x) balanced, for symmetric M; None otherwise.
        row_scale: r, float64, on the device of the matrix; equal to ``scale`` for symmetric M.
        col_scale: c, likewise.
        iterations: products with M (or Mᵀ) that were spent.
        residual: max |sum − 1| over all rows and columns of the balanced matrix.
        history: the residual after each product.
        reason: how it ended and what to do next, see :class:`StopReason`.
    """

    scale: Tensor | None
    row_scale: Tensor = field(repr=False)
    col_scale: Tensor = field(repr=False)
    iterations: int
    residual: float
    history: tuple[float, ...] = field(repr=False)
    reason: StopReason
    _matrix: SparseMatrix = field(repr=False)
    _format: InputFormat = field(repr=False)

    @property
    def converged(self) -> bool:
        return self.reason is StopReason.CONVERGED

    def __str__(self) -> str:
        return f"residual {self.residual:.1e} after {self.iterations} products. {self.reason.value}"

    def weight(self, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """(x_i x_j) a_ij for the given edges (a_ij = 1 without ``edge_weight``).

        Right on any sampled part of the graph too, since an entry of the balanced matrix depends
        on nothing else. A self-loop of the graph form has a_ii = 1.
        """
        row, column = edge_index
        weight = self.row_scale[row] * self.col_scale[column]
        return weight if edge_weight is None else weight * edge_weight

    def csr(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
        """The balanced matrix as (row starts, columns, values), self-loops stored."""
        matrix = with_stored_loops(self._matrix)
        values = torch.empty(len(matrix.column), dtype=dtype, device=matrix.device)
        for first, last in matrix.row_blocks():
            start, stop = matrix.row_start[[first, last]].tolist()
            part = self.row_scale.index_select(0, matrix.rows(first, last))
            # x_i x_j first: that product is the same for (i, j) and (j, i), to the last bit.
            part *= self.col_scale.index_select(0, matrix.column[start:stop])
            if matrix.values is not None:
                part *= matrix.entries(start, stop)
            values[start:stop] = part
        return matrix.row_start, matrix.column, values

    def matrix(self, dtype: torch.dtype = torch.float64) -> Any:
        """The balanced matrix in the form it was given in; exactly symmetric if that was.

        For an edge index: the pair (edge_index, edge_weight), self-loops among the edges.
        """
        starts, column, values = self.csr(dtype)
        size = (len(starts) - 1, len(starts) - 1)
        if self._format.kind in ("edges", "numpy edges"):
            whole = SparseMatrix(starts, column, None, loops=False)
            edges = torch.stack([whole.rows().long(), column.long()])
            return (
                (edges, values) if self._format.kind == "edges" else (edges.numpy(), values.numpy())
            )
        if self._format.kind == "scipy":
            from scipy.sparse import csr_array

            numpy_csr = csr_array((values.numpy(), column.numpy(), starts.numpy()), shape=size)
            return self._format.scipy_class(numpy_csr)
        if self._format.layout != torch.sparse_csr:
            starts, column = starts.long(), column.long()
        csr = csr_tensor(starts, column, values, size)
        same = (
            csr
            if self._format.layout == torch.sparse_csr
            else csr.to_sparse(layout=self._format.layout)
        )
        return same.coalesce() if self._format.layout == torch.sparse_coo else same
