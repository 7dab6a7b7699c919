"""The arcs of a range of shards, a block of rows at a time, within a limit of memory.

While all arcs of a process fit in the memory they may take, a block is a shard whose files are
mapped; otherwise blocks of rows are read into one buffer, again in each pass. On a GPU all blocks
are kept. Products with blocks of rows are the same as with all rows, bit by bit where a row is
added up from its first entry to its last.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.errors import RawlsError
from ..._core.row_files import read_rows
from ..._core.sparse import row_spans
from .shards import Shard, Shards

#: Rows and arcs together of a block that is read: some 20 MB, tens of milliseconds of work.
BLOCK_SIZE = 1 << 22
#: On a GPU an index of an arc must fit in 32 bits.
_CUDA_BLOCK_SIZE = 1 << 30
_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class ArcBlock:
    """Rows of a graph in CSR form.

    Attributes:
        first: The first row, counted from the first row of the first shard.
        last: The row after the last one.
        row_start: Where the rows begin, int64 (last − first + 1); the first need not begin at 0.
        column: The arcs' other ends, int32 or int64.
        weight: Their weights; None in an unweighted graph.
    """

    first: int
    last: int
    row_start: Tensor
    column: Tensor
    weight: Tensor | None

    def spans(self, arcs: int) -> Iterator[ArcBlock]:
        """Cut the block into parts of about so many arcs each."""
        starts = self.row_start
        for a, b in row_spans(starts, arcs):
            begin, end = (starts[[a, b]] - starts[0]).tolist()
            yield ArcBlock(
                self.first + a,
                self.first + b,
                starts[a : b + 1],
                self.column[begin:end],
                None if self.weight is None else self.weight[begin:end],
            )


class ArcBlocks:
    """The arcs of shards that follow each other, to be gone over many times.

    Args:
        shards: The shards, opened, in their order.
        memory: The bytes that the arcs may take; a block that is read may take more, see
            :func:`least_bytes`.
        device: Where the blocks are wanted.
        weight_dtype: The type of the weights; by default as in the files.
        block_size: Rows and arcs together of a block that is read.

    Attributes:
        first: The first row of the first shard.
        last: The row after the last one of the last shard.
        num_arcs: The number of arcs.
        kept: Whether every pass yields the same arrays: those of mapped files, or of a GPU.
        held_bytes: The memory that the arcs take.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        memory: int,
        device: torch.device = _CPU,
        weight_dtype: torch.dtype | None = None,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self.first, self.last = shards[0].first, shards[-1].last
        self.num_arcs = sum(len(shard.column) for shard in shards)
        self._dtype = weight_dtype
        self._blocks: list[ArcBlock] | None = None
        whole = sum(shard.graph_bytes for shard in shards)
        weights = [tensor_of(shard.weight) for shard in shards if shard.weight is not None]
        converts = any(each.dtype != (weight_dtype or each.dtype) for each in weights)
        if device.type != "cpu":
            self._cuts = _cuts(shards, _CUDA_BLOCK_SIZE)
            self._blocks = [_moved(block, device) for block in self._read()]
        elif whole <= memory and not converts:
            self._blocks = [
                ArcBlock(each.first - self.first, each.last - self.first, *_tensors(each))
                for each in shards
            ]
        else:
            self._cuts = _cuts(shards, block_size)
        self.kept = self._blocks is not None
        self.held_bytes = whole if self.kept else least_bytes(shards, block_size)

    def __iter__(self) -> Iterator[ArcBlock]:
        """Go over the blocks; the arrays of one that is read are valid until the next one."""
        return self._read() if self._blocks is None else iter(self._blocks)

    def _read(self) -> Iterator[ArcBlock]:
        rooms: dict[str, NDArray[Any]] = {}

        def read(name: str, mapped: NDArray[Any], first: int, last: int) -> Tensor:
            if len(rooms.get(name, ())) < last - first:
                rooms[name] = np.empty(last - first, dtype=mapped.dtype)
            return torch.from_numpy(read_rows(mapped, first, rooms[name][: last - first]))

        for shard, a, b in self._cuts:
            at = shard.first - self.first
            row_start = read("row_start", shard.row_start, a, b + 1)
            begin, end = int(row_start[0]), int(row_start[-1])
            column = read("column", shard.column, begin, end)
            weight = None
            if shard.weight is not None:
                weight = read("weight", shard.weight, begin, end).to(self._dtype)
            yield ArcBlock(at + a, at + b, row_start, column, weight)


def least_bytes(shards: Sequence[Shard], block_size: int = BLOCK_SIZE) -> int:
    """Return the bytes of the longest block that is read of opened shards."""
    most = 0
    for shard, a, b in _cuts(shards, block_size):
        arcs = _start(shard, b) - _start(shard, a)
        size = shard.column.itemsize + (0 if shard.weight is None else shard.weight.itemsize + 8)
        most = max(most, 8 * (b - a + 1) + size * arcs)
    return most


def shards_of_process(shards: Shards, rank: int, world_size: int) -> range:
    """Return the numbers of the shards that one of several processes works on, which are in a row.

    Raises:
        RawlsError: If there are fewer shards than processes.
    """
    count = len(shards)
    if count < world_size:
        raise RawlsError(
            f"{shards.folder} has {count} shard{'s' * (count != 1)}, but {world_size} processes "
            f"were started: use torchrun --nproc-per-node {count}, or write more shards"
        )
    return range(rank * count // world_size, (rank + 1) * count // world_size)


def tensor_of(mapped: NDArray[Any]) -> Tensor:
    """Return a tensor on the memory of a mapped array, which must only be read."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(mapped))


def _cuts(shards: Sequence[Shard], size: int) -> list[tuple[Shard, int, int]]:
    """Rows of shards of about that size, or one longer row; without a pass over the row starts."""
    found = []
    for shard in shards:
        rows, a = shard.last - shard.first, 0

        def load(row: int, shard: Shard = shard) -> int:
            return _start(shard, row) + row

        while a < rows:
            b = bisect_right(range(rows + 1), load(a) + size, lo=a + 2, key=load) - 1
            found.append((shard, a, b))
            a = b
    return found


def _tensors(shard: Shard) -> tuple[Tensor, Tensor, Tensor | None]:
    weight = None if shard.weight is None else tensor_of(shard.weight)
    return tensor_of(shard.row_start), tensor_of(shard.column), weight


def _moved(block: ArcBlock, device: torch.device) -> ArcBlock:
    weight = None if block.weight is None else block.weight.to(device)
    rows = block.row_start.to(device, copy=True)
    return replace(block, row_start=rows, column=block.column.to(device, copy=True), weight=weight)


def _start(shard: Shard, row: int) -> int:
    """Where a row begins, read without a page of the file becoming part of this process."""
    return int(read_rows(shard.row_start, row, np.empty(1, dtype=np.int64))[0])
