"""The result of ``balance``: the scaling, its residual, why it stopped, and the balanced matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.sparse import csr_tensor
from .sparse_matrix import SparseMatrix, with_stored_loops


class StopReason(Enum):
    """Why a balancing stopped; the value is a sentence that says what to do next."""

    CONVERGED = "The row and column sums are within tol of 1."
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
        """The sentence that says what to do next."""
        return self.value


@dataclass(frozen=True, eq=False)
class Convergence:
    """How an iteration ended, as a :class:`Scaling` describes it."""

    iterations: int
    residual: float
    history: tuple[float, ...] = field(repr=False)
    reason: StopReason

    @property
    def converged(self) -> bool:
        """Whether the residual is at most ``tol``."""
        return self.reason is StopReason.CONVERGED


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scaling(Convergence):
    """A scaling r, c with diag(r) M diag(c) doubly stochastic: the result of :func:`balance`.

    Attributes:
        scale: x with diag(x) M diag(x) balanced, for symmetric M; None otherwise.
        row_scale: r (nodes,), float64, on the device of the matrix; ``scale`` for symmetric M.
        col_scale: c, likewise.
        iterations: Number of products with M (or Mᵀ).
        residual: max ``|sum − 1|`` over all rows and columns of the balanced matrix.
        history: The residual after each product.
        reason: Why it stopped and what to do next, see :class:`StopReason`.

    Example:
        >>> import torch
        >>> import rawlsgcn as rg
        >>> scaling = rg.balance(torch.tensor([[0, 1], [1, 0]]))
        >>> scaling.scale
        tensor([0.7071, 0.7071], dtype=torch.float64)
        >>> scaling.reason.name
        'CONVERGED'
    """

    scale: Tensor | None
    row_scale: Tensor
    col_scale: Tensor
    _matrix: SparseMatrix
    _format: Any

    def usable(self, what: str) -> Scaling:
        """Return this scaling if it converged, or stopped at the rounding of float64.

        Args:
            what: What was balanced, for the error.

        Raises:
            RawlsError: If it did not.
        """
        if not self.converged and not self.residual <= 1e-8:
            raise RawlsError(
                f"{what} could not be balanced (an error of {self.residual:.1e} after "
                f"{self.iterations} products): divide the edge weights by the largest, or clip them"
            )
        return self

    def __repr__(self) -> str:
        how = "one vector" if self.scale is not None else "rows and columns"
        return f"Scaling of {len(self.row_scale):,} nodes, {how}: {self}"

    def _repr_html_(self) -> str:
        """A table for notebooks; all of it is numbers, so there is nothing to escape."""
        vectors = {"scaling x": self.row_scale}
        if self.scale is None:
            vectors = {"scaling of rows": self.row_scale, "scaling of columns": self.col_scale}
        rows = {
            "nodes": f"{len(self.row_scale):,}",
            "largest error of a row or column sum": f"{self.residual:.1e}",
            "products": f"{self.iterations:,}",
        }
        for name, vector in vectors.items():
            low, high = vector.aminmax()
            rows[name] = f"{float(low):.3g} to {float(high):.3g}"
        cell = 'style="text-align: left; padding: .15em .8em .15em 0"'
        body = "".join(
            f'<tr><th scope="row" {cell}>{name}</th><td {cell}>{value}</td></tr>'
            for name, value in rows.items()
        )
        return f'<div class="rawlsgcn"><table>{body}</table><p>{self.reason.message}</p></div>'

    def __str__(self) -> str:
        return f"residual {self.residual:.1e} after {self.iterations} products. {self.reason.value}"

    def weight(self, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Compute the balanced matrix's entries r_i a_ij c_j at some edges.

        They are exact on any sampled part of the graph too, since an entry depends on nothing else.

        Args:
            edge_index: Edge indices (2, E). A self-loop of a balanced graph has a_ii = 1.
            edge_weight: Weights a_ij (E,) of these edges; by default all are one.

        Returns:
            The entries (E,), float64.
        """
        row, column = edge_index
        weight = self.row_scale[row] * self.col_scale[column]
        return weight if edge_weight is None else weight * edge_weight

    def csr(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the balanced matrix in CSR form, with its self-loops.

        Args:
            dtype: Type of the values.

        Returns:
            Row starts (nodes + 1,), columns and values, indices in 32 bits.
        """
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
        """Compute the balanced matrix in the format of the input; exactly symmetric if that was.

        Args:
            dtype: Type of the values.

        Returns:
            For an edge index the pair (edge_index, edge_weight), self-loops included; otherwise a
            scipy matrix of the same class or a torch sparse tensor of the same layout.
        """
        starts, column, values = self.csr(dtype)
        size = (len(starts) - 1, len(starts) - 1)
        if self._format in ("edges", "numpy edges"):
            whole = SparseMatrix(starts, column, None, loops=False)
            edges = torch.stack([whole.rows().long(), column.long()])
            return (edges, values) if self._format == "edges" else (edges.numpy(), values.numpy())
        if not isinstance(self._format, torch.layout):
            from scipy.sparse import csr_array

            numpy_csr = csr_array((values.numpy(), column.numpy(), starts.numpy()), shape=size)
            return self._format(numpy_csr)
        if self._format == torch.sparse_csr:
            return csr_tensor(starts, column, values, size)
        csr = csr_tensor(starts.long(), column.long(), values, size)
        same = csr.to_sparse(layout=self._format)
        return same.coalesce() if self._format == torch.sparse_coo else same


def tolerance(dtype: torch.dtype) -> float:
    """Return the tolerance of a balancing whose values are stored in ``dtype``."""
    return 1e-12 if dtype == torch.float64 else 1e-8
