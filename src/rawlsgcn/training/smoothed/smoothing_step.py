"""One step Z ← (1 - α) P Z + α F with P = diag(s) (A + I) diag(s), without the values of P.

With Y = diag(s) Z a step is Y ← diag((1 - α) s²) (A + I) Y + α diag(s) F: the rows of Y that are
gathered are scaled already, so nothing but the columns is read for an arc of an unweighted graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core.kernels import kernels
from ..._core.sparse import csr_tensor
from ...graphs.arc_blocks import ArcBlock

#: Arcs whose values are made at a time where nothing is compiled, on the CPU and on a GPU.
_CPU_SPAN, _CUDA_SPAN = 1 << 20, 1 << 30


def smooth_rows(
    block: ArcBlock, right: Tensor, own: Tensor, factor: Tensor, added: Tensor, out: Tensor
) -> None:
    """Write diag(f) (A + I) Y + T for the rows of a block, compiled where that is possible.

    Args:
        block: The rows of A; its columns are rows of ``right``.
        right: Y, of shape (rows that columns name, columns).
        own: The rows of Y of this process; the block's are among them.
        factor: f, one number for each of these rows.
        added: T, of the shape of ``own``.
        out: Where the rows are written, of the shape of ``own``.
    """
    fast = kernels() if right.device.type == "cpu" and block.column.dtype == torch.int32 else None
    if fast is not None:
        rows = slice(block.first, block.last)
        arcs = block.row_start, block.column, block.weight
        fast.smoothing_step(*arcs, right, own[rows], factor[rows], added[rows], out[rows])
        return
    for part in block.spans(_CPU_SPAN if right.device.type == "cpu" else _CUDA_SPAN):
        rows = slice(part.first, part.last)
        values = right.new_ones(len(part.column)) if part.weight is None else part.weight
        starts = (part.row_start - part.row_start[0]).to(part.column.dtype)
        matrix = csr_tensor(starts, part.column, values, (len(starts) - 1, len(right)))
        result = torch.addmm(own[rows], matrix, right, out=out[rows])
        result.mul_(factor[rows, None]).add_(added[rows])
