"""Features smoothed by personalized PageRank (Gasteiger et al., 2019): Z = Π F.

With a matrix P, a teleport probability α and K steps, Π is what K times

    Z ← (1 - α) P Z + α F,     from Z = F,

makes of F. It is linear: Π (F W) = (Π F) W, and for a symmetric P the rows R of Π F are (Π E)ᵀ F
with E the columns R of the identity. So neither Π nor all of Π F is ever stored: for training the
labeled rows are computed by whichever has fewer columns, E or F; for prediction F W is smoothed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._core.sparse import SparseProduct
from .fixed_matrix import FixedMatrix

#: Bytes that the dense columns of a block may take.
BLOCK_BYTES = 256 << 20


@dataclass(frozen=True)
class PageRankSmoothing:
    """Π for a symmetric matrix P.

    Columns are smoothed at once that take at most ``block_bytes`` of memory.
    """

    matrix: Tensor
    teleport: float = 0.1
    steps: int = 10
    block_bytes: int = BLOCK_BYTES

    def __call__(self, dense: Tensor) -> Tensor:
        """Π F for a dense F of shape (nodes, columns), the columns in blocks."""
        size = self._columns(dense)
        if dense.shape[1] <= size:
            return self._block(dense)
        blocks = torch.split(dense, size, dim=1)
        return torch.cat([self._block(block.contiguous()) for block in blocks], dim=1)

    def rows(self, features: FixedMatrix, nodes: Tensor) -> Tensor:
        """The rows of Π F of some nodes, dense, for a dense or CSR F."""
        matrix = features.matrix
        out = matrix.new_zeros((len(nodes), matrix.shape[1]), layout=torch.strided)
        size = self._columns(out)
        if len(nodes) < matrix.shape[1]:
            for start in range(0, len(nodes), size):
                chosen = nodes[start : start + size]
                unit = out.new_zeros(matrix.shape[0], len(chosen))
                unit[chosen, torch.arange(len(chosen), device=nodes.device)] = 1
                out[start : start + size] = product(features.transpose, self._block(unit)).t()
            return out
        for start in range(0, matrix.shape[1], size):
            end = min(start + size, matrix.shape[1])
            out[:, start:end] = self._block(_dense_columns(features, start, end))[nodes]
        return out

    def _columns(self, like: Tensor) -> int:
        """How many columns are smoothed at once: there are three matrices of them."""
        return max(16, self.block_bytes // (3 * like.element_size() * self.matrix.shape[0] + 1))

    def _block(self, dense: Tensor) -> Tensor:
        times, start = SparseProduct(self.matrix), dense * self.teleport
        smoothed, other = dense.clone(), torch.empty_like(dense)
        for _ in range(self.steps):
            times(smoothed, other)
            torch.add(start, other, alpha=1 - self.teleport, out=other)
            smoothed, other = other, smoothed
        return smoothed


def product(left: Tensor, right: Tensor) -> Tensor:
    """Compute left @ right for a dense or CSR matrix on the left, without a gradient."""
    if left.layout == torch.strided:
        return left @ right
    return SparseProduct(left)(right, right.new_empty(left.shape[0], right.shape[1]))


def _dense_columns(features: FixedMatrix, start: int, end: int) -> Tensor:
    """Columns of a dense or CSR matrix, dense and contiguous."""
    if features.matrix.layout == torch.strided:
        return features.matrix[:, start:end].contiguous()
    transpose = features.transpose
    first, last = (int(transpose.crow_indices()[at]) for at in (start, end))
    counts = transpose.crow_indices()[start : end + 1].diff().long()
    column = torch.repeat_interleave(torch.arange(end - start, device=counts.device), counts)
    out = transpose.values().new_zeros(features.matrix.shape[0], end - start)
    out[transpose.col_indices()[first:last].long(), column] = transpose.values()[first:last]
    return out
