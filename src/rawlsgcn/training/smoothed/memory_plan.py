"""How many columns are smoothed at once: as many as the memory holds, in whole cache lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ..._core.errors import RawlsError
from ..._core.memory import memory_left, size_text
from ...graphs.shards.arc_blocks import least_bytes
from ...graphs.shards.shards import Shard
from .column_blocks import PART_SIZE
from .exchange import Exchange

#: Bytes of a cache line: a block has a multiple of it in each row, 16 numbers of 4 bytes.
LINE = 64
#: What the parts of rows that are read and written take.
_PARTS = 24 * PART_SIZE
#: Arcs stay in memory while they take no more than this share; else they are read in every step.
_ARCS_SHARE = 0.125
#: The share of a GPU's free memory that is used; the product needs some for itself.
_GPU_SHARE = 0.85


def plan_memory(
    opened: Sequence[Shard],
    exchange: Exchange,
    limit: int,
    device: torch.device,
    itemsize: int,
    training: int = 0,
) -> tuple[int, int]:
    """Divide the memory of a process between columns and the arcs of its shards.

    The matrix that is gathered from, the rows that are written, the rows that are added and those
    that are sent have to be there together; they take, for every line of columns,

        64 bytes · (rows that columns name + 2 · own rows + rows to send).

    On a GPU its own free memory counts, and the ``limit`` is for the ``training`` alone, which
    needs at least so many bytes after the smoothing.

    Returns:
        The most cache lines of a row that a block of columns may have, and the bytes that the arcs
        may take, for :class:`ArcBlocks`.

    Raises:
        RawlsError: If the limit is too small for a single line or the training; it names the least.
    """
    line = LINE * (exchange.rows + 2 * exchange.count + exchange.packed_rows)
    vectors = (16 + itemsize) * exchange.count + 8 * exchange.packed_rows
    whole = sum(shard.graph_bytes for shard in opened)
    what = f"smooth a graph of this size{' and train on its rows' if training else ''}"
    if device.type == "cuda":
        memory_left(training, limit, what)
        free = int(_GPU_SHARE * torch.cuda.mem_get_info(device)[0])
        arcs = whole + (itemsize + 4) * sum(len(shard.column) for shard in opened)
        left = free - arcs - vectors
        if left < line:
            raise RawlsError(
                f"the {size_text(free)} of the GPU are too little to smooth a graph of this size: "
                f"at least {math.ceil((free - left + line) / 10**6):,} MB are needed; use "
                "--device cpu"
            )
        return left // line, arcs
    arcs = min(whole, least_bytes(opened))
    needed = _PARTS + vectors + arcs + line
    most = max(needed, training)
    left = line + most - needed + memory_left(most, limit, what)
    if whole <= min(_ARCS_SHARE * (left + arcs), left + arcs - line):
        left, arcs = left + arcs - whole, whole
    return left // line, arcs


def column_blocks(
    finished: NDArray[np.bool_], lines: int, line_columns: int
) -> list[tuple[int, int]]:
    """Divide the columns that are not finished into blocks of about equal width.

    A block has at most so many cache lines of so many columns. Returned are the first column of
    each, and the one after its last.
    """
    found = []
    edges = np.flatnonzero(np.diff(finished.astype(np.int8), prepend=1, append=1))
    for first, last in edges.reshape(-1, 2).tolist():
        whole = math.ceil((last - first) / line_columns)
        count = math.ceil(whole / lines)
        cuts = [first + line_columns * (block * whole // count) for block in range(count)]
        found += list(zip(cuts, [*cuts[1:], last], strict=True))
    return found


def padded(columns: int, line_columns: int) -> int:
    """The width of a block's rows in memory, a multiple of a cache line."""
    return math.ceil(columns / line_columns) * line_columns
