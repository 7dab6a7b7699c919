"""How cost grows with the size of the graph: balancing by nonzeros, an epoch by edges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Convolutional, Inputs, find_method, with_changes
from rawlsgcn.training import Job

from .balancing import on_random
from .measurement import Measurement, timed, wait
from .training import prepared

BALANCE_SIZES = (10**5, 10**6, 10**7, 4 * 10**7, 10**8)
TRAINING_SIZES = (10**4, 10**5, 10**6, 10**7)


def balancing(limit: int, repeats: int, progress: Callable[[str], None]) -> Iterator[Measurement]:
    """Measure balancing of random graphs of rising size."""
    for size in BALANCE_SIZES:
        if size <= limit:
            progress(f"balancing {size:.0e} nonzeros")
            yield from on_random(size, repeats)


def training(
    device: torch.device, limit: int, repeats: int, progress: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Measure an epoch of five runs of RawlsGCN-Grad, with few training nodes and with half."""
    method = find_method("rawlsgcn-grad")
    assert isinstance(method, Convolutional)
    for edges in TRAINING_SIZES:
        if edges > limit:
            continue
        progress(f"training on {edges:.0e} edges")
        graph = synthetic(edges // 20, average_degree=20, features=100, words=8)
        for split in ("20 a class", "half of the nodes"):
            if split != "20 a class":
                generator = torch.Generator().manual_seed(0)
                graph.train_mask = torch.rand(graph.num_nodes, generator=generator) < 0.5
            inputs = Inputs.of(graph, device=device)
            epochs = 20 if split == "20 a class" else 3
            settings = with_changes(method.defaults, {"epochs": epochs})
            jobs = [Job(settings, seed) for seed in range(5)]
            start = time.perf_counter()
            train = prepared(method, inputs, jobs)
            wait(device)
            prepare = time.perf_counter() - start
            took = timed(train, repeats, device, 1 / epochs)
            yield {
                "edges": int(graph.edge_index.shape[1]),
                "nodes": int(graph.num_nodes),
                "training_nodes": split,
                "prepare_seconds": prepare,
                "epoch_seconds": took.median,
                "microseconds_per_edge": took.median / graph.edge_index.shape[1] * 1e6,
            }
