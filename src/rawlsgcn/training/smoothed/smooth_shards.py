"""Features of shards smoothed by personalized PageRank, within a limit of memory.

Π F is what K times Z ← (1 - α) P Z + α F makes of Z = F (:mod:`rawlsgcn.methods._ops.smoothing` has
the form in memory). Columns are smoothed in blocks that fit in memory, the rows of the graph are
mapped or read in blocks, and the rows of features are read in parts. Each process of a
``torch.distributed`` group owns the rows of a range of shards. A number of the result is the same
bits whatever the blocks, the threads, the processes and the restarts, if it was compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from ..._core.atomic_files import only_writer, remove, remove_leftovers
from ..._core.distributed_context import DistributedContext, holds_anywhere, least, meet
from ..._core.errors import RawlsError
from ..._core.memory import memory_limit
from ..._core.progress import ProgressCallback, no_progress
from ..._core.row_files import read_rows
from ..._core.sparse import as_tensor, empty_array
from ...balancing.distributed import balance_and_save
from ...graphs.node_features import row_sums
from ...graphs.shards.arc_blocks import ArcBlocks, shards_of_process
from ...graphs.shards.shards import Shard, Shards
from .column_blocks import PART_SIZE, ColumnBlocks
from .exchange import Exchange, plan_exchange
from .memory_plan import LINE, column_blocks, padded, plan_memory
from .row_order import row_bytes
from .smoothed_files import SmoothedForm, SmoothedRows, open_smoothed
from .smoothing_step import row_scale, smooth_rows

#: What the progress says while another process has the folder.
WAITING = "waiting for another process, which smooths these features"


@dataclass(frozen=True, eq=False)
class SmoothingResult:
    """The smoothed features, and how they were made.

    Attributes:
        rows: The features.
        blocks: The first column of each block that this run smoothed, and the one after its last.
        exchange: How the processes exchanged rows; None if nothing was left to do.
        arcs_read: Whether arcs were read in every step, rather than kept in memory.
    """

    rows: SmoothedRows
    blocks: list[tuple[int, int]] = field(default_factory=list)
    exchange: Exchange | None = None
    arcs_read: bool = False


def smooth_shards(
    shards: Shards,
    form: SmoothedForm,
    context: DistributedContext | None = None,
    *,
    memory: int | None = None,
    most_columns: int | None = None,
    training_rows: int = 0,
    progress: ProgressCallback = no_progress,
) -> SmoothingResult:
    """Smooth the features of shards into files of rows; what an earlier run finished is kept.

    Shards that are not balanced are balanced first, if P is doubly stochastic.

    Args:
        shards: The shards of a symmetric graph without self-loops, with features.
        form: What to compute.
        context: This process; by default the only one.
        memory: The bytes that this process may have; by default 80 % of what is free.
        most_columns: The most columns of a block; by default as many as fit.
        training_rows: The rows that are trained on after it, for which the memory must do too.
        progress: Called after each part of the work.

    Raises:
        RawlsError: If there are no features, the scaling is a rough one, the memory is too small,
            or a process has no shard.
    """
    context = DistributedContext() if context is None else context
    memory = memory_limit(None) if memory is None else memory
    own = shards_of_process(shards, context.rank, context.world_size)
    if form.normalization == "doubly-stochastic":
        shards.require_balanced()
    found = open_smoothed(shards, form)
    missing = holds_anywhere(found is None, context)  # nobody writes before everybody has looked
    if context.rank == 0:
        remove_leftovers(shards.folder)
        if not missing:
            hidden = shards.folder / f".{form.name}"
            with only_writer(hidden):
                remove(hidden)  # which a kill may have left
    if found is not None and not missing:
        return SmoothingResult(found)
    progress(0, 1, "reading the shards")
    opened = [shards.open(shard) for shard in own]
    features = _num_features(shards, opened)
    # Too little memory is an error before the balancing and the smoothing, which may take long.
    training = min(row_bytes(training_rows, features, context)) if training_rows else 0
    count = opened[-1].last - opened[0].first
    exchange = Exchange("none", shards.num_nodes if context.world_size == 1 else count, 0, count)
    itemsize = np.dtype(form.dtype).itemsize
    plan_memory(opened, exchange, memory, context.device, itemsize, training)
    if form.normalization == "doubly-stochastic" and holds_anywhere(
        any(shard.scale is None for shard in opened), context
    ):
        balance_and_save(shards, context, memory=memory, progress=progress)
        opened = [shards.open(shard) for shard in own]
    files = ColumnBlocks(shards, form, features)
    smoothing: _Smoothing | None = None
    with ExitStack() as stack:
        if context.rank == 0:
            stack.enter_context(files.only_here(lambda: progress(0, 1, WAITING)))
        # Another run may have finished while this one waited for the folder.
        found = open_smoothed(shards, form) if context.rank == 0 else None
        if not holds_anywhere(found is not None, context):
            smoothing = _Smoothing(files, opened, own, context, memory, progress)
            smoothing.run(most_columns)
            meet(context)
            if context.rank == 0:
                files.publish()
        elif context.rank == 0:
            remove(files.folder)
    meet(context)
    found = open_smoothed(shards, form)
    if found is None:
        raise RawlsError(
            f"the shards in {shards.folder} were balanced or written again meanwhile: smooth again"
        )
    if smoothing is None:
        return SmoothingResult(found)
    return SmoothingResult(found, smoothing.blocks, smoothing.exchange, not smoothing.arcs.kept)


class _Smoothing:
    """The work of one process: its rows of all column blocks, one block after another."""

    blocks: list[tuple[int, int]]

    def __init__(
        self,
        files: ColumnBlocks,
        opened: Sequence[Shard],
        own: range,
        context: DistributedContext,
        memory: int,
        progress: ProgressCallback,
    ) -> None:
        self.files, self.form, self.opened, self.own = files, files.form, opened, own
        self.context, self.device, self.progress = context, context.device, progress
        starts = [
            files.shards.cuts[shards_of_process(files.shards, rank, context.world_size)[0]]
            for rank in range(context.world_size)
        ]
        progress(0, 1, "looking for the rows to exchange")
        self.exchange, renumbered = plan_exchange(
            opened, [*starts, files.shards.num_nodes], context, files.local_folder(context.rank)
        )
        self.dtype: torch.dtype = getattr(torch, self.form.dtype)
        self.line = LINE // self.dtype.itemsize
        lines, arcs = plan_memory(
            renumbered, self.exchange, memory, self.device, self.dtype.itemsize
        )
        self.lines = int(least(lines, context))
        self.arcs = ArcBlocks(renumbered, arcs, self.device, self.dtype)
        scale = torch.from_numpy(row_scale(self.form.normalization, opened, self.arcs))
        self.scale = scale.to(self.device, self.dtype)
        self.factor = scale.square().mul_(1 - self.form.teleport).to(self.device, self.dtype)
        #: Rows of F or Z that are read or written at a time.
        self.part = max(1, PART_SIZE // files.features)

    def run(self, most_columns: int | None) -> None:
        """Smooth what is not finished, a block of columns at a time, and join the columns."""
        finished = torch.from_numpy(self.files.finished()).to(self.device, torch.uint8)
        if self.context.world_size > 1:  # as the first process sees them
            distributed.broadcast(finished, src=0)
        lines = self.lines
        if most_columns is not None:
            lines = min(lines, max(1, most_columns // self.line))
        self.blocks = column_blocks(finished.bool().cpu().numpy(), lines, self.line)
        # A column is read, smoothed in steps and written, and in the end joined.
        features, parts = self.files.features, self.form.steps + 2
        left = sum(last - first for first, last in self.blocks)
        self._total, self._done = features * (parts + 1), float((features - left) * parts)
        for number, (first, last) in enumerate(self.blocks, start=1):
            self._words = f"smoothing columns {first} to {last - 1}"
            if len(self.blocks) > 1:
                self._words += f", block {number} of {len(self.blocks)}"
            self._smooth(first, last)
            meet(self.context)
        self._words = "joining the columns"
        for shard in self.own:
            self.files.join(shard)
            self._advance(features / len(self.own))

    def _advance(self, work: float) -> None:
        self._done += work
        self.progress(int(1000 * self._done / self._total), 1000, self._words)

    def _smooth(self, first: int, last: int) -> None:
        """Compute columns of this process's rows of Π F, and keep them."""
        exchange, width = self.exchange, last - first
        held, out, added, packed = (
            as_tensor(empty_array((rows, padded(width, self.line)), self.device, self.dtype))
            for rows in (exchange.rows, exchange.count, exchange.count, exchange.packed_rows)
        )
        own = slice(exchange.own, exchange.own + exchange.count)
        for each in (held[own], added):
            each[:, width:] = 0
        for rows, part in self._features(first, last):  # diag(s) F and α diag(s) F
            scaled = held[own][rows, :width]
            torch.mul(part.to(self.dtype), self.scale[rows, None], out=scaled)
            torch.mul(scaled, self.form.teleport, out=added[rows, :width])
            self._advance((rows.stop - rows.start) / exchange.count * width)
        for step in range(self.form.steps):
            if step and exchange.kind == "none":
                held, out = out, held
            elif step:
                held[own] = out
            exchange(held, packed)
            for block in self.arcs:
                smooth_rows(block, held, held[own], self.factor, added, out)
                self._advance(width * len(block.column) / max(1, self.arcs.num_arcs))
        result = (out if self.form.steps else held[own])[:, :width]
        for number, shard in zip(self.own, self.opened, strict=True):
            self.files.write(number, first, last, self._unscaled(result, shard))
            self._advance(width / len(self.own))

    def _features(self, first: int, last: int) -> Iterator[tuple[slice, Tensor]]:
        """Columns of F, float32, for some of this process's rows at a time."""
        for shard in self.opened:
            assert shard.x is not None
            room = np.empty((min(self.part, len(shard.x)), shard.x.shape[1]), np.float32)
            for rows in self._parts(shard):
                at, count = rows.start + self.arcs.first - shard.first, rows.stop - rows.start
                whole = torch.from_numpy(read_rows(shard.x, at, room[:count])).to(self.device)
                part = whole[:, first:last]
                if self.form.row_normalized:
                    part = part / row_sums(whole)
                yield rows, part.float()

    def _unscaled(self, result: Tensor, shard: Shard) -> Iterator[NDArray[Any]]:
        """Z = diag(s)⁻¹ Y for the rows of a shard, some at a time."""
        for rows in self._parts(shard):
            part = result[rows] / self.scale[rows, None]
            # One number tells, unless it overflows itself.
            if not part.sum(dtype=torch.float64).isfinite() and not part.isfinite().all():
                raise RawlsError(
                    f"the smoothed features of {self.files.shards.folder}, nodes "
                    f"{rows.start + self.arcs.first:,} to {rows.stop + self.arcs.first - 1:,}, are "
                    "not all finite: their features, or weights of arcs near them, are too large "
                    "or no numbers; write the shards again"
                )
            yield part.cpu().numpy()

    def _parts(self, shard: Shard) -> Iterator[slice]:
        """The rows of a shard, some at a time, counted from the first of this process."""
        end = shard.last - self.arcs.first
        for row in range(shard.first - self.arcs.first, end, self.part):
            yield slice(row, min(row + self.part, end))


def _num_features(shards: Shards, opened: Sequence[Shard]) -> int:
    widths = {0 if shard.x is None else shard.x.shape[1] for shard in opened}
    if 0 in widths:
        raise RawlsError(
            f"the shards in {shards.folder} have no features to smooth: write them from a graph "
            "with features"
        )
    if len(widths) > 1:
        raise RawlsError(
            f"the shards in {shards.folder} have features of {sorted(widths)} columns: write the "
            "shards again"
        )
    return int(widths.pop())
