"""Balance shards in the processes that share them, and keep the scaling beside each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import distributed

from .._core.errors import RawlsError
from .._core.progress import ProgressCallback, no_progress
from ..graphs.shards.arc_blocks import shards_of_process
from ..graphs.shards.shards import Shards
from .distributed import ShardScaling, balance_shards

if TYPE_CHECKING:
    from .._core.distributed_context import DistributedContext


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
    if context.world_size > 1:
        distributed.barrier()  # every old part is removed before a new one is written
    for shard in pieces:
        shards.write_residual(shard, scaling.residual)
    for shard in changed:
        shards.write_scale(shard, pieces[shard])
    if context.world_size > 1:
        distributed.barrier()
    return scaling
