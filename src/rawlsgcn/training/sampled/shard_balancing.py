"""Balance shards in the processes that share them, and keep the scaling beside each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import distributed

from ..._core.errors import RawlsError
from ...balancing.distributed import ShardScaling, balance_shards
from ...graphs.shards import Shards

if TYPE_CHECKING:
    from .distributed_context import DistributedContext


def balance_and_save(
    shards: Shards,
    context: DistributedContext,
    tol: float = 1e-8,
    max_iterations: int = 2000,
) -> ShardScaling:
    """Balance A + I, each process with one shard, and write its part of the scaling to the shard.

    Args:
        shards: As many shards as there are processes.
        context: This process.
        tol: The largest allowed ``|sum − 1|`` of a row.
        max_iterations: The largest number of products.

    Returns:
        This process's part of the scaling.

    Raises:
        RawlsError: If the number of shards is another one, or balancing does not converge.
    """
    scaling = balance_shards(shards, tol=tol, max_iterations=max_iterations, device=context.device)
    if not scaling.converged and not scaling.residual <= tol:
        raise RawlsError(f"the shards could not be balanced: {scaling.reason.message}")
    shards.remove_scale(context.rank)
    if context.world_size > 1:
        distributed.barrier()  # every old part is removed before a new one is written
    shards.write_scale(context.rank, scaling.scale.cpu().numpy())
    if context.world_size > 1:
        distributed.barrier()
    return scaling
