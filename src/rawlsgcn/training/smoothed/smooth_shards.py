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
from dataclasses import dataclass
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
from ...graphs.shards.arc_blocks import ArcBlocks, shards_of_process
from ...graphs.shards.shards import Shard, Shards
from ...methods.inputs import row_sums
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
    blocks: list[tuple[int, int]]
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

    Returns:
        The smoothed features.

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
        return SmoothingResult(found, [])
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
    with ExitStack() as stack:
        if context.rank == 0:
            stack.enter_context(files.only_here(lambda: progress(0, 1, WAITING)))
        # Another run may have finished while this one waited for the folder.
        found = open_smoothed(shards, form) if context.rank == 0 else None
        if holds_anywhere(found is not None, context):
            smoothing, blocks = None, []
            if context.rank == 0:
                remove(files.folder)
        else:
            smoothing = _Smoothing(files, opened, own, context, memory, progress)
            blocks = smoothing.run(most_columns)
            meet(context)
            if context.rank == 0:
                files.publish()
    meet(context)
    found = open_smoothed(shards, form)
    if found is None:
        raise RawlsError(
            f"the shards in {shards.folder} were balanced or written again meanwhile: smooth again"
        )
    if smoothing is None:
        return SmoothingResult(found, [])
    return SmoothingResult(found, blocks, smoothing.exchange, not smoothing.arcs.kept)


class _Smoothing:
    """The work of one process: its rows of all column blocks, one block after another."""

    def __init__(
        self,
        files: ColumnBlocks,
        opened: Sequence[Shard],
        own: range,
        context: DistributedContext,
        memory: int,
        progress: ProgressCallback,
    ) -> None:
        shards, self.form = files.shards, files.form
        self.files, self.own, self.context = files, own, context
        self.opened, self.progress = opened, progress
        ranges = [
            shards_of_process(shards, rank, context.world_size)
            for rank in range(context.world_size)
        ]
        cuts = [*(shards.cuts[each[0]] for each in ranges), shards.num_nodes]
        progress(0, 1, "looking for the rows to exchange")
        local = files.local_folder(context.rank)
        self.exchange, renumbered = plan_exchange(opened, cuts, context, local)
        self.device = context.device
        self.dtype = getattr(torch, self.form.dtype)
        self.line = LINE // self.dtype.itemsize
        plan = plan_memory(renumbered, self.exchange, memory, self.device, self.dtype.itemsize)
        self.lines = int(least(plan.lines, context))
        self.arcs = ArcBlocks(renumbered, plan.arcs_bytes, self.device, self.dtype)
        scale = torch.from_numpy(row_scale(self.form.normalization, opened, self.arcs))
        self.scale = scale.to(self.device, self.dtype)
        self.factor = scale.square().mul_(1 - self.form.teleport).to(self.device, self.dtype)

    def run(self, most_columns: int | None) -> list[tuple[int, int]]:
        """Smooth what is not finished, and join the columns; return the blocks."""
        lines = self.lines
        if most_columns is not None:
            lines = min(lines, max(1, most_columns // self.line))
        blocks = column_blocks(self._finished(), lines, self.line)
        features, steps = self.files.features, self.form.steps
        left = sum(last - first for first, last in blocks)
        self._total = features * (steps + 2) + features
        self._done = float(features * (steps + 2) - left * (steps + 2))
        for number, (first, last) in enumerate(blocks, start=1):
            self._words = f"smoothing columns {first} to {last - 1}"
            if len(blocks) > 1:
                self._words += f", block {number} of {len(blocks)}"
            self._smooth(first, last)
            meet(self.context)
        self._words = "joining the columns"
        for shard in self.own:
            self.files.join(shard)
            self._advance(features / len(self.own))
        return blocks

    def _finished(self) -> NDArray[np.bool_]:
        """The columns that are there already, as the first process sees them."""
        found = torch.from_numpy(self.files.finished()).to(self.device, torch.uint8)
        if self.context.world_size > 1:
            distributed.broadcast(found, src=0)
        return found.bool().cpu().numpy()

    def _advance(self, work: float) -> None:
        self._done += work
        self.progress(int(1000 * self._done / self._total), 1000, self._words)

    def _smooth(self, first: int, last: int) -> None:
        """Compute columns of this process's rows of Π F, and keep them."""
        exchange, width = self.exchange, padded(last - first, self.line)
        held = self._matrix(exchange.rows, width)
        out, added = self._matrix(exchange.count, width), self._matrix(exchange.count, width)
        packed = self._matrix(exchange.packed_rows, width)
        own = slice(exchange.own, exchange.own + exchange.count)
        self._load(first, last, held[own], added)
        for step in range(self.form.steps):
            if step and exchange.kind == "none":
                held, out = out, held
            elif step:
                held[own] = out
            exchange(held, packed)
            for block in self.arcs:
                smooth_rows(block, held, held[own], self.factor, added, out)
                done = (last - first) * len(block.column) / max(1, self.arcs.num_arcs)
                self._advance(done)
        result = out if self.form.steps else held[own]
        for shard, opened in zip(self.own, self.opened, strict=True):
            parts = self._unscaled(result[:, : last - first], opened)
            self.files.write(shard, first, last, parts)
            self._advance((last - first) / len(self.own))

    def _matrix(self, rows: int, width: int) -> Tensor:
        return as_tensor(empty_array((rows, width), self.device, self.dtype))

    def _load(self, first: int, last: int, scaled: Tensor, added: Tensor) -> None:
        """Write diag(s) F and α diag(s) F, columns ``first`` to ``last``; zeros behind them."""
        columns = slice(0, last - first)
        scaled[:, last - first :] = 0
        added[:, last - first :] = 0
        for rows, part in self._features(first, last):
            values = part.to(self.dtype)
            torch.mul(values, self.scale[rows, None], out=scaled[rows, columns])
            torch.mul(scaled[rows, columns], self.form.teleport, out=added[rows, columns])
            self._advance((rows.stop - rows.start) / self.exchange.count * (last - first))

    def _features(self, first: int, last: int) -> Iterator[tuple[slice, Tensor]]:
        """Columns of F, float32, for some of this process's rows at a time."""
        for shard in self.opened:
            assert shard.x is not None
            start, size = shard.first - self.arcs.first, self._part_rows
            room = np.empty((min(size, len(shard.x)), shard.x.shape[1]), np.float32)
            for row in range(0, len(shard.x), size):
                count = min(size, len(shard.x) - row)
                whole = torch.from_numpy(read_rows(shard.x, row, room[:count])).to(self.device)
                part = whole[:, first:last]
                if self.form.row_normalized:
                    part = part / row_sums(whole)
                yield slice(start + row, start + row + count), part.float()

    def _unscaled(self, result: Tensor, shard: Shard) -> Iterator[NDArray[Any]]:
        """Z = diag(s)⁻¹ Y for the rows of a shard, some at a time."""
        end = shard.last - self.arcs.first
        for row in range(shard.first - self.arcs.first, end, self._part_rows):
            rows = slice(row, min(row + self._part_rows, end))
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

    @property
    def _part_rows(self) -> int:
        """Rows of F or Z that are read or written at a time."""
        return max(1, PART_SIZE // self.files.features)


def _num_features(shards: Shards, opened: Sequence[Shard]) -> int:
    for shard in opened:
        if shard.x is None:
            raise RawlsError(
                f"the shards in {shards.folder} have no features to smooth: write them from a "
                "graph with features"
            )
    widths = {shard.x.shape[1] for shard in opened if shard.x is not None}
    if len(widths) > 1 or widths == {0}:
        raise RawlsError(
            f"the shards in {shards.folder} have features of {sorted(widths)} columns: write the "
            "shards again"
        )
    return int(widths.pop())
