"""Which rows of Z the processes give each other in every step of a smoothing.

Process r multiplies its rows of A, and needs the rows of Z that their columns name. Either each
process sends the others the rows that they name (the halo), or all rows go to all. The halo never
has more rows, but they must be packed and the columns renumbered; so it is used where it saves at
least a tenth of the bytes. Either way a process keeps one matrix with its own rows and those of
others, and the arcs' columns are rows of that matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from ..._core.distributed_context import DistributedContext
from ..._core.row_files import read_rows, write_rows
from ...graphs.shards.shards import Shard

#: The largest share of all rows for which the halo is sent instead.
_WORTH_PACKING = 0.9
#: Columns of arcs that are looked at together.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Exchange:
    """How the rows of a matrix Z reach a process, and where they lie.

    Attributes:
        kind: ``"none"`` for one process, ``"halo"`` or ``"all-gather"``.
        rows: The number of rows of Z that this process holds.
        own: Where its own rows begin among them.
        count: The number of its own rows.
        halo_rows: Rows that all processes together would receive as halos.
        all_rows: Rows that they would receive if all went to all.
        cuts: The first row of each process, and the number of nodes.
        sent: Own rows to send, by receiver, for a halo; so many to each process, and from each.
    """

    kind: str
    rows: int
    own: int
    count: int
    halo_rows: int = 0
    all_rows: int = 0
    cuts: Sequence[int] = ()
    sent: Tensor | None = None
    send_counts: Sequence[int] = ()
    receive_counts: Sequence[int] = ()

    @property
    def packed_rows(self) -> int:
        """The rows of the buffer for sending."""
        return 0 if self.sent is None else len(self.sent)

    @property
    def rows_moved(self) -> int:
        """The rows that all processes together receive in a step."""
        return {"none": 0, "halo": self.halo_rows, "all-gather": self.all_rows}[self.kind]

    def __call__(self, held: Tensor, packed: Tensor) -> None:
        """Fill in the other processes' rows of a matrix; ``packed`` has room for those to send."""
        if self.sent is not None:
            torch.index_select(held[: self.count], 0, self.sent, out=packed)
            received, counts = list(self.receive_counts), list(self.send_counts)
            distributed.all_to_all_single(held[self.count :], packed, received, counts)
        elif self.kind == "all-gather":
            for rank, (first, last) in enumerate(pairwise(self.cuts)):
                distributed.broadcast(held[first:last], src=rank)


def plan_exchange(
    opened: Sequence[Shard], cuts: Sequence[int], context: DistributedContext, folder: Path
) -> tuple[Exchange, list[Shard]]:
    """Choose what moves fewer bytes, and renumber the columns of the shards for it, in a folder.

    ``cuts`` has the first row of each process, and the number of nodes. The columns of the shards
    that are returned are rows of the matrix of the exchange.
    """
    nodes, (first, last) = cuts[-1], cuts[context.rank : context.rank + 2]
    count = last - first
    if context.world_size == 1:
        return Exchange("none", nodes, 0, nodes), list(opened)
    named = np.zeros(nodes, dtype=bool)
    for shard in opened:
        for columns in _columns(shard):
            named[columns] = True
    named[first:last] = False
    halo = np.flatnonzero(named)  # rows of other processes
    all_rows = (context.world_size - 1) * nodes
    totals = torch.tensor([len(halo)], device=context.device)
    distributed.all_reduce(totals)
    halo_rows = int(totals)
    if halo_rows > _WORTH_PACKING * all_rows:
        exchange = Exchange("all-gather", nodes, first, count, halo_rows, all_rows, cuts)
        return exchange, list(opened)
    receive = np.diff(np.searchsorted(halo, cuts)).tolist()
    counts = torch.tensor(receive, device=context.device)
    send_counts = torch.empty_like(counts)
    distributed.all_to_all_single(send_counts, counts)
    send: list[int] = send_counts.tolist()
    wanted = torch.from_numpy(halo).to(context.device)
    asked = wanted.new_empty(sum(send))
    distributed.all_to_all_single(asked, wanted, send, receive)
    held = count + len(halo)
    exchange = Exchange(
        "halo", held, 0, count, halo_rows, all_rows, cuts, asked - first, send, receive
    )
    # The matrix has this process's own rows and then the halo.
    place = np.empty(nodes, dtype=opened[0].column.dtype)
    place[first:last] = np.arange(count)
    place[halo] = np.arange(count, held)
    renumbered = []
    for shard in opened:
        path = folder / f"{shard.first:012d}-column.npy"
        parts = (place[columns] for columns in _columns(shard))
        write_rows(path, shard.column.shape, place.dtype, parts)
        column = np.load(path, mmap_mode="r", allow_pickle=False)
        renumbered.append(replace(shard, column=column))
    return exchange, renumbered


def _columns(shard: Shard) -> Iterator[NDArray[np.integer]]:
    """The columns of a shard's arcs, some at a time."""
    column = shard.column
    for at in range(0, len(column), _BLOCK):
        yield read_rows(column, at, np.empty(min(_BLOCK, len(column) - at), dtype=column.dtype))
