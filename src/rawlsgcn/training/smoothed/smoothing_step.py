"""One step Z ← (1 - α) P Z + α F with P = diag(s) (A + I) diag(s), without the values of P.

With Y = diag(s) Z a step is Y ← diag((1 - α) s²) (A + I) Y + α diag(s) F: the rows of Y that are
gathered are scaled already, so nothing but the columns is read for an arc of an unweighted graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.kernels import kernels
from ..._core.row_files import read_rows
from ..._core.sparse import csr_tensor
from ...graphs.shards.arc_blocks import ArcBlock, ArcBlocks
from ...graphs.shards.shards import Shard
from .memory_plan import LINE

#: Arcs whose values are made at a time where nothing is compiled, on the CPU and on a GPU.
_CPU_SPAN, _CUDA_SPAN = 1 << 20, 1 << 30


def smooth_rows(
    block: ArcBlock, right: Tensor, own: Tensor, factor: Tensor, added: Tensor, out: Tensor
) -> None:
    """Write diag(f) (A + I) Y + T for the rows of a block, compiled where that is possible.

    The block's columns are rows of ``right``, which is Y; its own rows are among those of ``own``,
    which are the rows of Y of this process. The ``factor`` f, T, which is ``added``, and ``out``
    have a row for each of these.
    """
    whole_lines = right.shape[1] * right.element_size() % LINE == 0
    fitting = right.device.type == "cpu" and block.column.dtype == torch.int32 and whole_lines
    fast = kernels() if fitting else None
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


def row_scale(normalization: str, opened: Sequence[Shard], arcs: ArcBlocks) -> NDArray[np.float64]:
    """Return s with P = diag(s) (A + I) diag(s), for the rows of this process.

    It is ``"doubly-stochastic"``, and the shards have s, or ``"renormalized"``.
    """
    scale = np.empty(arcs.last - arcs.first)
    if normalization == "doubly-stochastic":
        for shard in opened:
            assert shard.scale is not None
            part = scale[shard.first - arcs.first : shard.last - arcs.first]
            read_rows(shard.scale, 0, part)
        return scale
    for block in arcs:
        part = scale[block.first : block.last]
        starts = block.row_start.cpu().numpy()
        if block.weight is None:
            part[:] = np.diff(starts)
            continue
        part[:] = 0
        filled = np.flatnonzero(np.diff(starts))
        if len(filled):
            weights = block.weight.cpu().numpy()
            part[filled] = np.add.reduceat(weights, starts[filled] - starts[0], dtype=np.float64)
    scale += 1
    return 1 / np.sqrt(scale)
