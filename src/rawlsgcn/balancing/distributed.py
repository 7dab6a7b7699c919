"""``balance`` over several processes, each with a range of rows: one vector is exchanged per step.

Every process of a ``torch.distributed`` group goes over the arcs of a range of shards on disk (see
:mod:`rawlsgcn.graphs.shards.arc_blocks`) and holds its piece of every vector of the iteration; only
the vector to be multiplied is held in full, 8 bytes a node. A step gathers the pieces of that
vector, multiplies this process's rows and updates its piece of x. The acceleration needs no vector
of the other processes: its few inner products are summed over the processes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, distributed

from .._core.distributed_context import DistributedContext, meet
from .._core.errors import RawlsError
from .._core.machine import pick_device
from .._core.memory import memory_left, memory_limit
from .._core.progress import ProgressCallback, no_progress
from .._core.sparse import as_tensor, empty_array
from ..graphs.shards.arc_blocks import ArcBlocks, least_bytes, shards_of_process
from ..graphs.shards.shards import Shards
from .scaling import Convergence
from .shard_iteration import ShardIteration
from .solver import iterate, require_limits
from .symmetry import asymmetry

#: Vectors of a process's rows that the descent holds, and of all nodes that an exchange does.
_OWN_VECTORS, _FULL_VECTORS = 12, 2
#: Arcs whose symmetry is checked at once.
_FINGERPRINTED = 1 << 19


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardScaling(Convergence):
    """One process's rows ``first`` to ``last`` of the scaling x.

    ``held_bytes`` is the memory of these rows of the matrix and of the vectors.
    """

    first: int
    last: int
    scale: Tensor = field(repr=False)
    held_bytes: int


def balance_shards(
    shards: Shards,
    *,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    device: torch.device | str = "cpu",
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> ShardScaling:
    """Balance A + I in the processes of the default group, if any, each with a range of shards.

    The shards are of a symmetric A without self-loops, at least one for each process. ``memory`` is
    what this process may use, by default 80 % of what is free; arcs that do not fit are read again
    for each product. ``progress`` gets the share of the way to ``tol`` in percent.

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
    iteration = ShardIteration(arcs, cuts, target)
    x, ended = iterate(
        iteration, target, True, tol, max_iterations, lambda found: _report(found, tol, progress)
    )
    return ShardScaling(
        first=arcs.first,
        last=arcs.last,
        scale=x.clone(),
        held_bytes=arcs.held_bytes + iteration.held_bytes,
        **vars(ended),
    )


def balance_and_save(
    shards: Shards,
    context: DistributedContext,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    memory: int | None = None,
    progress: ProgressCallback = no_progress,
) -> ShardScaling:
    """Balance A + I by :func:`balance_shards`, and keep the scaling in the shards.

    Raises:
        RawlsError: As :func:`balance_shards`, or if balancing does not converge.
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


def _require_symmetric(arcs: ArcBlocks, nodes: int, device: torch.device, folder: Path) -> None:
    """Raise an error unless the matrix is symmetric, by the fingerprint of ``inspect_matrix``."""
    key = as_tensor(empty_array((nodes,), device)).view(torch.int64)
    generator = torch.Generator(device).manual_seed(20220430)
    key.random_(-(2**63), 2**63 - 1, generator=generator).bitwise_or_(1)
    totals = torch.zeros(2, dtype=torch.int64, device=device)
    for block in arcs:
        for part in block.spans(_FINGERPRINTED):
            node = torch.arange(part.first, part.last, device=device) + arcs.first
            row = torch.repeat_interleave(node, part.row_start.diff())
            column = part.column.long()
            term = asymmetry(key, row, column, part.weight)
            totals += torch.stack([term, (row == column).sum()])
    if _rank_and_world_size()[1] > 1:
        distributed.all_reduce(totals)
    difference, loops = totals.tolist()
    if loops:
        raise RawlsError(
            f"the shards in {folder} have {loops} self-loops, which balancing adds itself: write "
            "them without self-loops"
        )
    if difference:
        raise RawlsError(
            f"the matrix in the shards in {folder} is not symmetric: write both directions of "
            "every edge, with the same weight"
        )


def _rank_and_world_size() -> tuple[int, int]:
    """Return the number of this process and the number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()
