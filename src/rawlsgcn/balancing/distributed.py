"""``balance`` over several processes, each with a range of rows: one vector is exchanged per step.

Every process of a ``torch.distributed`` group goes over the arcs of a range of shards on disk (see
:mod:`rawlsgcn.graphs.shards.arc_blocks`) and holds its piece of every vector of the iteration; only
the vector to be multiplied is held in full, 8 bytes a node. A step gathers the pieces of that
vector, multiplies this process's rows and updates its piece of x. The acceleration needs no vector
of the other processes: its few inner products are summed over the processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from .._core.distributed_context import DistributedContext, meet
from .._core.errors import RawlsError
from .._core.machine import pick_device
from .._core.memory import memory_left, memory_limit
from .._core.progress import ProgressCallback, no_progress
from .._core.sparse import Array, array_module, as_tensor, dot, empty_array
from ..graphs.shards.arc_blocks import ArcBlocks, least_bytes, shards_of_process
from ..graphs.shards.shards import Shards
from .accelerated_descent import Descent
from .iterations import Symmetric
from .scaling import StopReason
from .shard_rows import BLOCK, ShardRows
from .solver import iterate, require_limits
from .symmetry import hash_bits

#: Vectors of a process's rows that the descent holds, and of all nodes that an exchange does.
_OWN_VECTORS, _FULL_VECTORS = 12, 2


@dataclass(frozen=True, eq=False)
class ShardScaling:
    """One process's rows of the scaling x: the result of :func:`balance_shards`.

    Attributes:
        first: The first row of the shard.
        last: The row after its last one.
        scale: x_i for these rows, float64.
        iterations: Number of products, each with one exchange of a vector.
        residual: max ``|sum − 1|`` over all rows of all processes.
        history: The residual after each product.
        reason: Why it stopped and what to do next.
        held_bytes: Memory of this process's rows of the matrix and of its vectors.
    """

    first: int
    last: int
    scale: Tensor = field(repr=False)
    iterations: int
    residual: float
    history: tuple[float, ...] = field(repr=False)
    reason: StopReason
    held_bytes: int

    @property
    def converged(self) -> bool:
        """Whether the residual is at most ``tol``."""
        return self.reason is StopReason.CONVERGED


def balance_shards(
    shards: Shards,
    *,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    device: torch.device | str = "cpu",
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> ShardScaling:
    """Balance A + I in the processes of the default group, each with a range of shards.

    Without a process group this process balances all shards.

    Args:
        shards: The shards of a symmetric A without self-loops, at least one for each process.
        tol: Largest ``|sum − 1|`` of a row that counts as converged.
        max_iterations: Maximum number of products.
        device: The device of this process.
        memory: The bytes that this process may use; arcs that do not fit are read again for each
            product. By default 80 % of what is free.
        progress: Called after each product with the share of the way to ``tol``, in percent.

    Returns:
        This process's rows of the scaling.

    Raises:
        RawlsError: If there are fewer shards than processes, if the matrix is not symmetric
            (which a random fingerprint of the arcs shows) or has self-loops, if the memory is too
            small, or if there is no such device.
    """
    require_limits(tol, max_iterations)
    target = pick_device(device)
    rank, world = _rank_and_world_size()
    ranges = [shards_of_process(shards, each, world) for each in range(world)]
    cuts = [*(shards.cuts[each[0]] for each in ranges), shards.num_nodes]
    progress(0, 100, "reading the shards")
    # An old scaling may be damaged, which balancing repairs.
    opened = [shards.open(shard, scaled=False) for shard in ranges[rank]]
    memory = memory_limit(None) if memory is None else memory
    vectors = _OWN_VECTORS * (cuts[rank + 1] - cuts[rank]) + _FULL_VECTORS * cuts[-1]
    left = 0
    if target.type == "cpu":
        least = least_bytes(opened)
        what = "balance a graph of this size"
        left = least + memory_left(8 * vectors + least, memory, what)
    arcs = ArcBlocks(opened, left, target)
    _require_symmetric(arcs, cuts[-1], target, shards.folder)
    rows = ShardRows(arcs, cuts, target)
    descent = _ShardDescent(_ShardIteration(rows), target, accelerate=True)
    with np.errstate(all="ignore"):
        residual, history, reason = iterate(
            descent, tol, max_iterations, lambda found: _report(found, tol, progress)
        )
    return ShardScaling(
        first=arcs.first,
        last=arcs.last,
        scale=descent.best.clone(),
        iterations=len(history),
        residual=residual,
        history=tuple(history),
        reason=reason,
        held_bytes=arcs.held_bytes + descent.held_bytes + rows.held_bytes,
    )


def balance_and_save(
    shards: Shards,
    context: DistributedContext,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> ShardScaling:
    """Balance A + I, each process with a range of shards, and keep the scaling in the shards.

    Args:
        shards: At least as many shards as there are processes.
        context: This process.
        tol: The largest allowed ``|sum − 1|`` of a row.
        max_iterations: The largest number of products.
        memory: The bytes that this process may use; by default 80 % of what is free.
        progress: Called after each product.

    Returns:
        This process's part of the scaling.

    Raises:
        RawlsError: If there are fewer shards than processes, or balancing does not converge.
    """
    scaling = balance_shards(
        shards,
        tol=tol,
        max_iterations=max_iterations,
        device=context.device,
        memory=memory,
        progress=progress,
    )
    if not scaling.converged and not scaling.residual <= tol:
        raise RawlsError(f"the shards could not be balanced: {scaling.reason.message}")
    scale = scaling.scale.cpu().numpy()
    pieces = {
        shard: scale[shards.cuts[shard] - scaling.first : shards.cuts[shard + 1] - scaling.first]
        for shard in shards_of_process(shards, context.rank, context.world_size)
    }
    # A piece with the same bits stays: another command may be reading it.
    changed = [shard for shard, piece in pieces.items() if not shards.has_scale(shard, piece)]
    for shard in changed:
        shards.remove_scale(shard)
    meet(context)  # every old part is removed before a new one is written
    for shard in pieces:
        shards.write_residual(shard, scaling.residual)
    for shard in changed:
        shards.write_scale(shard, pieces[shard])
    meet(context)
    return scaling


def _report(history: list[float], tol: float, progress: ProgressCallback) -> None:
    """Report how many of the decades from the first residual to ``tol`` are gained."""
    first, best = history[0], min(history)
    words = f"balancing, residual {best:.0e} after {len(history)} products"
    done = 0.0
    if 0 < tol < first < math.inf and best > 0:
        done = min(1.0, math.log(first / best) / math.log(first / tol))
    progress(int(100 * done), 100, words)


class _ShardIteration(Symmetric):
    """x ← 2 x / (1 + r) on this process's piece of x; the diagonal of A + I is one."""

    def __init__(self, rows: ShardRows) -> None:
        self._rows, self._factor = rows, 1.0
        self._library = array_module(rows.device)
        self.size = len(rows)

    def start(self, x: Array, y: Array) -> list[float]:
        """As in one process: x_i solves x² + o_i s x = 1, with o the row sums of A."""
        self._rows.write_row_sums(as_tensor(y))
        y -= 1
        total, nodes = _sums(float(y.sum()))[0], self._rows.cuts[-1]
        mean = math.sqrt(nodes / total) if total else 0.0
        for _ in range(8 if total else 0):
            self._write_roots(y, mean, x)
            mean = math.sqrt(mean * _sums(dot(y, x))[0] / total)
        self._write_roots(y, mean, x)
        factor = math.sqrt(nodes / _sums(self.product(as_tensor(x), as_tensor(y)))[0])
        x *= factor
        y *= factor
        return []

    def _write_roots(self, outer: Array, mean: float, x: Array) -> None:
        linear = outer * mean
        x[:] = 2 / (linear + self._library.sqrt(linear * linear + 4))

    def product(self, p: Tensor, q: Tensor) -> float:
        return self._rows(p, q)

    def measure(self, x: Tensor, y: Tensor) -> int:
        self._rows(x, y)
        return 1


class _ShardDescent(Descent):
    """The descent on pieces of its vectors, its sums taken over all processes."""

    def _sums(self, *numbers: float) -> list[float]:
        return _sums(*numbers)

    def _largest(self, *numbers: float) -> list[float]:
        return _reduced(numbers, distributed.ReduceOp.MAX)


def _require_symmetric(arcs: ArcBlocks, nodes: int, device: torch.device, folder: Path) -> None:
    """Raise an error unless the matrix is symmetric, by the fingerprint of ``inspect_matrix``."""
    key = as_tensor(empty_array((nodes,), device)).view(torch.int64)
    generator = torch.Generator(device).manual_seed(20220430)
    key.random_(-(2**63), 2**63 - 1, generator=generator).bitwise_or_(1)
    totals = torch.zeros(2, dtype=torch.int64, device=device)
    for block in arcs:
        for part in block.spans(BLOCK):
            node = torch.arange(part.first, part.last, device=device) + arcs.first
            row = torch.repeat_interleave(node, part.row_start.diff())
            column = part.column.long()
            term = key[row] * key[column] * (row - column).sign_()
            if part.weight is not None:
                term *= hash_bits(part.weight)
            totals += torch.stack([term.sum(), (row == column).sum()])
    if _rank_and_world_size()[1] > 1:
        distributed.all_reduce(totals)
    asymmetry, loops = totals.tolist()
    if loops:
        raise RawlsError(
            f"the shards in {folder} have {loops} self-loops, which balancing adds itself: write "
            "them without self-loops"
        )
    if asymmetry:
        raise RawlsError(
            f"the matrix in the shards in {folder} is not symmetric: write both directions of "
            "every edge, with the same weight"
        )


def _sums(*numbers: float) -> list[float]:
    return _reduced(numbers, distributed.ReduceOp.SUM)


def _reduced(numbers: Sequence[float], how: Any) -> list[float]:
    if _rank_and_world_size()[1] == 1:
        return list(numbers)
    on_gpu = distributed.get_backend() == "nccl"
    values = torch.tensor(numbers, dtype=torch.float64, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(values, how)
    reduced: list[float] = values.tolist()
    return reduced


def _rank_and_world_size() -> tuple[int, int]:
    """Return the number of this process and the number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()
