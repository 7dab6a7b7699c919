"""The parts of the benchmark, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from rawlsgcn._core.machine import machine
from rawlsgcn.graphs import load

from . import balancing, sampling, scaling, smoothing, training
from .measurement import Measurement

MEASURES = {
    "training": training.against_torch_geometric,
    "methods": training.against_own_gcn,
    "balance": balancing.on_graph,
}
PARTS = (*MEASURES, "scaling", "sampling", "smoothing")
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
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Measure the chosen parts.

    Args:
        parts: Names of ``PARTS``.
        datasets: Names of datasets, for all parts but scaling, sampling and smoothing.
        device: The device to measure on.
        repeats: Repetitions of each timing.
        limit: The largest number of nonzeros of the scaling tables.
        root: The folder of the datasets.
        command: The command line, to be shown with the results.
        progress: Called with a description of each measurement.

    Returns:
        The results, as ``results-DEVICE.json`` keeps them.
    """
    measurements: list[Measurement] = []
    growth: list[dict[str, Any]] = []
    for part in parts:
        if part == "scaling":
            if device.type == "cpu":
                measurements += scaling.balancing(limit, repeats, progress)
            growth += scaling.training(device, limit, repeats, progress)
            continue
        if part in ("sampling", "smoothing"):
            module = sampling if part == "sampling" else smoothing
            measurements += module.measurements(limit, repeats, progress)
            continue
        for name in datasets:
            progress(f"{part}: {name}")
            graph = load(name, root=root, sparse=True)
            measurements += MEASURES[part](graph, device, repeats)
    return {
        "command": command,
        "parts": list(parts),
        "machine": machine(device),
        "repeats": repeats,
        "figures": [each.to_dict() for each in measurements],
        "training_scaling": growth,
    }
