"""What 10¹¹ edges would take on machines that are stated: arithmetic from one measured record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rawlsgcn._core.memory import size_text

#: Columns that are smoothed at once, float32, and the steps.
_COLUMNS, _STEPS = 16, 10


@dataclass(frozen=True)
class Machines:
    """Machines that see the same files; all cores work, and each receives at the full rate."""

    count: int = 16
    cores: int = 32
    memory: float = 512e9
    network: float = 12.5e9

    def __str__(self) -> str:
        return (
            f"{self.count} machines of {self.cores} cores and {size_text(self.memory)}, "
            f"{self.network * 8 / 1e9:g} Gbit/s each"
        )


@dataclass(frozen=True)
class Size:
    """A graph that nobody has here."""

    arcs: float = 2e11
    nodes: float = 2e9
    features: int = 100


def projection(record: dict[str, Any], size: Size, machines: Machines) -> list[str]:
    """Project a record to another size, and say what breaks first.

    Args:
        record: A record on the CPU, of :mod:`.records`.
        size: The graph.
        machines: The machines.

    Returns:
        The lines of a table in Markdown.
    """
    phases, threads = record["phases"], record["machine"]["threads"]
    per_arc = {name: phase["seconds"] / record["arcs"] for name, phase in phases.items()}
    # Work that all processes share takes as much less time as there are more cores.
    shared = threads / (machines.count * machines.cores)
    blocks = math.ceil(size.features / _COLUMNS)
    sent = {
        "balance": phases["balance"].get("products", 20) * 8 * size.nodes,
        "smooth": blocks * _STEPS * 4 * _COLUMNS * size.nodes,
    }
    rows = size.nodes / record["nodes"]
    seconds = {
        "shard": per_arc["shard"] * size.arcs,
        "balance": per_arc["balance"] * size.arcs * shared,
        "smooth": per_arc["smooth"] * size.arcs * shared * size.features / record["features"],
        "train": phases["train"]["seconds"] * rows * shared,
        "predict": phases["predict"]["seconds"] * rows,
        "audit": phases["audit"]["seconds"] * rows,
    }
    own = size.nodes / machines.count
    memory = {
        "shard": phases["shard"]["peak_memory_mb"] * 2**20 * rows,
        "balance": 16 * size.nodes + 12 * 8 * own,
        "smooth": 4 * _COLUMNS * (size.nodes + 2 * own),
        "train": 1.1e9,
        "predict": phases["predict"]["peak_memory_mb"] * 2**20,
        "audit": phases["audit"]["peak_memory_mb"] * 2**20 * rows,
    }
    graph = f"{size.arcs / 2:.0e} edges, {size.nodes:.0e} nodes, {size.features} features"
    lines = [
        f"{graph} on {machines}:",
        "",
        "| command | processes | computing | receiving | memory of a process |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, took in seconds.items():
        alone = name in ("shard", "predict", "audit")
        received = f"{_duration(sent[name] / machines.network)}" if name in sent else "-"
        breaks = " (**too much**)" if memory[name] > machines.memory else ""
        lines.append(
            f"| {name} | {1 if alone else machines.count} | {_duration(took)} | {received} | "
            f"{size_text(memory[name])}{breaks} |"
        )
    return lines


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
