"""The processes that torchrun started: joining them, and errors that are reported once."""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed import distributed_c10d

from .errors import RawlsError

#: Joining takes moments. Giving up makes torchrun start the processes again; waiting does not.
_JOIN_SECONDS = 60
_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class DistributedContext:
    """Which of how many processes this one is (``rank`` of ``world_size``), and its device."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009


def under_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return "RANK" in os.environ or "WORLD_SIZE" in os.environ


@contextmanager
def distributed_context(device: str = "auto") -> Iterator[DistributedContext]:
    """Join the processes that torchrun started; without torchrun this process is the only one.

    ``device`` is ``"cpu"``, ``"cuda"`` or ``"auto"``; each process takes the GPU of its local rank.

    Raises:
        RawlsError: If the environment is incomplete, or the other processes cannot be reached.
    """
    from .machine import pick_device

    present = [name for name in _VARIABLES if name in os.environ]
    if not under_torchrun():
        yield DistributedContext(device=pick_device(device))
        return
    missing = [name for name in _VARIABLES if name not in present]
    if missing:
        raise RawlsError(
            f"the environment has {present[0]}, but not {', '.join(missing)}: start this process "
            "with torchrun --nproc-per-node N -m rawlsgcn …"
        )
    own = pick_device(device)
    if own.type == "cuda":
        own = pick_device(f"cuda:{os.environ['LOCAL_RANK']}")
        torch.cuda.set_device(own)
    on_gpu = own.type == "cuda"
    try:
        distributed.init_process_group(
            "nccl" if on_gpu else "gloo",
            timeout=timedelta(seconds=_JOIN_SECONDS),
            device_id=own if on_gpu else None,
            **_own_store(),
        )
        # Joining is short; what comes after may wait long, for a process that reads or evaluates.
        distributed_c10d._set_pg_timeout(distributed_c10d.default_pg_timeout)
    except (RuntimeError, ValueError) as error:  # torch's network errors are RuntimeErrors
        why = str(error).strip().splitlines()[0][:120] if str(error).strip() else "no reason given"
        raise RawlsError(
            f"this process could not join the others at {os.environ['MASTER_ADDR']}:"
            f"{os.environ['MASTER_PORT']} ({why}): start all of them with the same torchrun command"
        ) from error
    try:
        yield DistributedContext(distributed.get_rank(), distributed.get_world_size(), own)
        distributed.barrier()
    finally:
        # A wrapped model that is freed after its group waits for a thread that waits for Python.
        gc.collect()
        distributed.destroy_process_group()


def _own_store() -> dict[str, Any]:
    """A part of torchrun's store for this start alone, where all processes are on one machine.

    The store outlives a restart, and with it the addresses of the processes before it: a process
    that reads one of those waits for a dead one. On several machines the counts of restarts may
    differ; there TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives every start a store of its own.
    """
    known = os.environ
    together = known.get("LOCAL_WORLD_SIZE") == known["WORLD_SIZE"]
    store = _agent_store(seconds=_JOIN_SECONDS) if together else None
    if store is None:
        return {}
    start = f"rawlsgcn-start-{known.get('TORCHELASTIC_RESTART_COUNT', 0)}"
    own = distributed.PrefixStore(start, store)  # type: ignore[attr-defined]
    return {"store": own, "rank": int(known["RANK"]), "world_size": int(known["WORLD_SIZE"])}


def _agent_store(seconds: float) -> Any:
    """Return the store of torchrun's agent; None if it has none."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return distributed.TCPStore(  # type: ignore[attr-defined]
        *where, is_master=False, timeout=timedelta(seconds=seconds)
    )


def already_reported(message: str) -> bool:
    """Whether another process of this torchrun, or this one before a restart, had the same error.

    All processes mostly make a mistake alike, and torchrun starts them again after any exit
    status but 0. Its agent keeps a store that outlives them, where each message is counted.
    """
    try:
        store = _agent_store(seconds=5) if under_torchrun() else None
        return store is not None and store.add(f"rawlsgcn-{zlib.crc32(message.encode())}", 1) > 1
    except (KeyError, ValueError, RuntimeError):
        return False


def require_equal(values: list[int], what: str, context: DistributedContext) -> None:
    """Raise an error if the processes have different ``values``, which are ``what``."""
    if context.world_size == 1:
        return
    own = torch.tensor(values, device=context.device)
    every = [torch.empty_like(own) for _ in range(context.world_size)]
    distributed.all_gather(every, own)
    if any(not torch.equal(each, own) for each in every):
        raise RawlsError(
            f"the processes see different {what}: every machine must see the same files"
        )


def meet(context: DistributedContext) -> None:
    """Wait until all processes are here."""
    if context.world_size > 1:
        distributed.barrier()


def least(number: int, context: DistributedContext) -> int:
    """Return the least of the processes' numbers."""
    if context.world_size == 1:
        return number
    values = torch.tensor([number], device=context.device)
    distributed.all_reduce(values, distributed.ReduceOp.MIN)
    return int(values)


def holds_anywhere(here: bool, context: DistributedContext) -> bool:
    """Say whether something holds in any of the processes."""
    return least(int(not here), context) == 0
