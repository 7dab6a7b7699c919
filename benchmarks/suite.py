"""What ``python -m benchmarks`` runs, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from rawlsgcn._core.machine import machine
from rawlsgcn.graphs import load

from . import balancing, sampling, scaling, training
from .measure import Figure

MEASURES = {
    "training": training.against_torch_geometric,
    "methods": training.against_own_gcn,
    "balance": balancing.on_graph,
}
PARTS = (*MEASURES, "scaling", "sampling")
DATASETS = ("amazon-photo", "citeseer", "coauthor-cs", "coauthor-physics")


def run(
    parts: Sequence[str],
    datasets: Sequence[str],
    device: torch.device,
    *,
    repeats: int,
    limit: int,
    root: Path | None,
    command: str,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Measure the chosen parts; sizes of the scaling tables stop at ``limit`` nonzeros."""
    figures: list[Figure] = []
    growth: list[dict[str, Any]] = []
    for part in parts:
        if part == "scaling":
            if device.type == "cpu":
                figures += scaling.balancing(limit, repeats, tell)
            growth += scaling.training(device, limit, repeats, tell)
            continue
        if part == "sampling":
            figures += sampling.figures(limit, repeats, tell)
            continue
        for name in datasets:
            tell(f"{part}: {name}")
            graph = load(name, root=root, sparse=True)
            figures += MEASURES[part](graph, device, repeats)
    return {
        "command": command,
        "parts": list(parts),
        "machine": machine(device),
        "repeats": repeats,
        "figures": [figure.to_dict() for figure in figures],
        "training_scaling": growth,
    }
