"""Which rows of Z the processes give each other in every step of a smoothing.

Process r multiplies its rows of A, and needs the rows of Z that their columns name. Either each
process sends the others the rows that they name (the halo), or all rows go to all. The halo never
has more rows, but they must be packed and the columns renumbered; so it is used where it saves at
least a tenth of the bytes. Either way a process keeps one matrix with its own rows and those of
others, and the arcs' columns are rows of that matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        sent: Own rows to send, by receiver, for a halo.
        send_counts: How many go to each process.
        receive_counts: How many come from each.
    """

    kind: str
    rows: int
    own: int
    count: int
    halo_rows: int = 0
    all_rows: int = 0
    cuts: tuple[int, ...] = ()
    sent: Tensor | None = None
    send_counts: tuple[int, ...] = ()
    receive_counts: tuple[int, ...] = ()

    @property
    def packed_rows(self) -> int:
        """The rows of the buffer for sending."""
        return 0 if self.sent is None else len(self.sent)

    @property
    def rows_moved(self) -> int:
        """The rows that all processes together receive in a step."""
        return {"none": 0, "halo": self.halo_rows, "all-gather": self.all_rows}[self.kind]

    def __call__(self, held: Tensor, packed: Tensor) -> None:
        """Fill in the other processes' rows of a matrix that has this process's own rows.

        Args:
            held: The matrix, of shape (rows, columns).
            packed: A buffer of shape (packed_rows, columns).
        """
        if self.kind == "halo":
            assert self.sent is not None
            torch.index_select(held[: self.count], 0, self.sent, out=packed)
            distributed.all_to_all_single(
                held[self.count :], packed, list(self.receive_counts), list(self.send_counts)
            )
        elif self.kind == "all-gather":
            for rank, (first, last) in enumerate(pairwise(self.cuts)):
                distributed.broadcast(held[first:last], src=rank)


def plan_exchange(
    opened: Sequence[Shard],
    cuts: Sequence[int],
    context: DistributedContext,
    folder: Path,
) -> tuple[Exchange, list[Shard]]:
    """Choose what moves fewer bytes, and renumber the columns for it.

    Args:
        opened: The shards of this process.
        cuts: The first row of each process, and the number of nodes.
        context: This process.
        folder: Where renumbered columns are written.

    Returns:
        The exchange, and the shards with columns that are rows of its matrix.
    """
    nodes, (first, last) = cuts[-1], cuts[context.rank : context.rank + 2]
    if context.world_size == 1:
        return Exchange("none", nodes, 0, nodes), list(opened)
    halo = _named_rows(opened, nodes, first, last)
    all_rows = (context.world_size - 1) * nodes
    totals = torch.tensor([len(halo)], device=context.device)
    distributed.all_reduce(totals)
    halo_rows = int(totals)
    if halo_rows > _WORTH_PACKING * all_rows:
        exchange = Exchange(
            "all-gather", nodes, first, last - first, halo_rows, all_rows, tuple(cuts)
        )
        return exchange, list(opened)
    receive = np.diff(np.searchsorted(halo, cuts)).tolist()
    counts = torch.tensor(receive, device=context.device)
    send_counts = torch.empty_like(counts)
    distributed.all_to_all_single(send_counts, counts)
    send: list[int] = send_counts.tolist()
    wanted = torch.from_numpy(halo).to(context.device)
    asked = wanted.new_empty(sum(send))
    distributed.all_to_all_single(asked, wanted, send, receive)
    exchange = Exchange(
        kind="halo",
        rows=last - first + len(halo),
        own=0,
        count=last - first,
        halo_rows=halo_rows,
        all_rows=all_rows,
        cuts=tuple(cuts),
        sent=asked - first,
        send_counts=tuple(send),
        receive_counts=tuple(receive),
    )
    return exchange, _renumbered(opened, halo, nodes, first, last, folder)


def _named_rows(opened: Sequence[Shard], nodes: int, first: int, last: int) -> NDArray[np.int64]:
    """The rows of other processes that the arcs' columns name, in their order."""
    named = np.zeros(nodes, dtype=bool)
    for shard in opened:
        for at in range(0, len(shard.column), _BLOCK):
            named[_columns(shard, at)] = True
    named[first:last] = False
    return np.flatnonzero(named)


def _renumbered(
    opened: Sequence[Shard], halo: NDArray[np.int64], nodes: int, first: int, last: int, to: Path
) -> list[Shard]:
    """Columns as rows of the matrix that has this process's own rows and then the halo."""
    place = np.empty(nodes, dtype=opened[0].column.dtype)
    place[first:last] = np.arange(last - first)
    place[halo] = np.arange(last - first, last - first + len(halo))
    found = []
    for shard in opened:
        path = to / f"{shard.first:012d}-column.npy"
        parts = (place[_columns(shard, at)] for at in range(0, len(shard.column), _BLOCK))
        write_rows(path, shard.column.shape, place.dtype, parts)
        found.append(replace(shard, column=np.load(path, mmap_mode="r", allow_pickle=False)))
    return found


def _columns(shard: Shard, at: int) -> NDArray[np.integer]:
    count = min(_BLOCK, len(shard.column) - at)
    return read_rows(shard.column, at, np.empty(count, dtype=shard.column.dtype))
