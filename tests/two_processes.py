"""What each of the two processes of test_distributed.py does: balance its shards, take a step."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rawlsgcn._core.distributed_context import DistributedContext, distributed_context
from rawlsgcn.balancing import distributed
from rawlsgcn.balancing.distributed import balance_and_save
from rawlsgcn.graphs.shards.arc_blocks import shards_of_process
from rawlsgcn.graphs.shards.shards import Shards
from rawlsgcn.methods import find_method, with_changes
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining


def resident_shards(folder: Path) -> dict[str, int]:
    """Kilobytes of each shard's matrix that are in this process's memory, as the kernel says."""
    found: dict[str, int] = {}
    current = None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            path = Path(line.split(maxsplit=5)[-1])
            current = path.name[:5] if path.parent == folder else None
        elif current and line.startswith("Rss:"):
            found[current] = found.get(current, 0) + int(line.split()[1])
    return found


def sampled_gradients(source: Source, context: DistributedContext) -> torch.Tensor:
    """The gradients of one sampled step after the processes have taken their mean."""
    method = find_method("rawlsgcn-grad")
    training = SampledTraining(
        method,
        source,
        with_changes(method.defaults, {"dropout": 0.0}),
        num_neighbors=[5, 4],
        batch_size=37,
        seed=2,
        context=context,
        dtype=torch.float64,
    )
    training.loss(next(iter(training.batches(0)))).backward()
    logits = training.logits().view(-1)
    return torch.cat([*(p.grad.view(-1) for p in training.network.parameters()), logits])


def main(folder: Path) -> None:
    with distributed_context("cpu") as context:
        shards, resident = Shards(folder), {}
        iterate = distributed.iterate

        def watched(*arguments: Any) -> Any:
            found = iterate(*arguments)
            resident.update(resident_shards(folder))
            return found

        distributed.iterate = watched  # the files are mapped only while it balances
        scaling = balance_and_save(shards, context, tol=1e-12)
        mine = shards_of_process(shards, context.rank, context.world_size)
        own = sum(resident.get(f"{shard:05d}", 0) for shard in mine)
        gradients = sampled_gradients(Source.of_shards(shards), context)
        np.savez(
            folder / f"result-{context.rank}.npz",
            rows=[scaling.first, scaling.last],
            held=scaling.held_bytes,
            residual=scaling.residual,
            own=own,
            others=sum(resident.values()) - own,
            gradients=gradients.numpy(),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
