"""Joining the processes that torchrun started: gloo between CPUs, nccl between GPUs."""

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

from ..._core.errors import RawlsError

#: Joining takes moments. To give up makes torchrun start the processes once more; to wait does not.
_JOIN_SECONDS = 60
_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class DistributedContext:
    """Which of how many processes this one is (``rank`` of ``world_size``), and its device."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009


@contextmanager
def distributed_context(device: str = "auto") -> Iterator[DistributedContext]:
    """This process's place among those of torchrun; alone where there is no torchrun."""
    from ..._core.machine import pick_device

    given = [name for name in _VARIABLES if name in os.environ]
    if "RANK" not in given and "WORLD_SIZE" not in given:
        yield DistributedContext(device=pick_device(device))
        return
    missing = [name for name in _VARIABLES if name not in given]
    if missing:
        raise RawlsError(
            f"this process is told its place by {given[0]}, but not {', '.join(missing)}: start "
            "it with torchrun --nproc-per-node N -m rawlsgcn.cli.launch …"
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
            **_meeting_place(),
        )
        # Joining is short; what comes after may wait long, for a process that reads or judges.
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


def _meeting_place() -> dict[str, Any]:
    """A part of torchrun's store for this start alone, where all processes are on one machine.

    The store outlives a restart, and with it the addresses of the processes before it: a process
    that reads one of those waits for a dead one. On several machines the counts of restarts may
    differ; there TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives every start a store of its own.
    """
    known = os.environ
    if known.get("LOCAL_WORLD_SIZE") != known["WORLD_SIZE"] or not _agent_has_the_store():
        return {}
    store = distributed.PrefixStore(  # type: ignore[attr-defined]
        f"rawlsgcn-start-{known.get('TORCHELASTIC_RESTART_COUNT', 0)}",
        _agent_store(seconds=_JOIN_SECONDS),
    )
    return {"store": store, "rank": int(known["RANK"]), "world_size": int(known["WORLD_SIZE"])}


def _agent_has_the_store() -> bool:
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _agent_store(seconds: float) -> Any:
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return distributed.TCPStore(  # type: ignore[attr-defined]
        *where, is_master=False, timeout=timedelta(seconds=seconds)
    )


def already_reported(error: RawlsError) -> bool:
    """Whether another process of this torchrun, or this one before a restart, has said the same.

    All processes mostly make a mistake alike, and torchrun starts them again after any exit
    status but 0. Its agent keeps a store that outlives them, where each sentence is counted.
    """
    if not _agent_has_the_store():
        return False
    try:
        told: int = _agent_store(seconds=5).add(f"rawlsgcn-{zlib.crc32(str(error).encode())}", 1)
        return told > 1
    except (KeyError, ValueError, RuntimeError):
        return False


def require_equal(values: list[int], what: str, context: DistributedContext) -> None:
    """Refuse to go on where processes see different things, which only one folder can cure."""
    if context.world_size == 1:
        return
    own = torch.tensor(values, device=context.device)
    every = [torch.empty_like(own) for _ in range(context.world_size)]
    distributed.all_gather(every, own)
    if any(not torch.equal(each, own) for each in every):
        raise RawlsError(
            f"the processes see different {what}: every machine must see the same files"
        )
