"""The time and the memory of the command ``rawlsgcn auto``, one graph after another, alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from rawlsgcn._core.atomic_files import atomic_file
from rawlsgcn._core.errors import RawlsError

from .records import Options, environment, read_files

#: The folder of these records.
FOLDER = "times"
#: Seconds that ``auto`` may take on two cores, and megabytes; seconds on an H200.
SECONDS = {"citeseer": 45, "amazon-photo": 90, "coauthor-cs": 360, "coauthor-physics": 600}
MEGABYTES, GPU_SECONDS = 4096, 15


def time_commands(graphs: Sequence[str], options: Options, fresh: bool, console: Console) -> None:
    """Time the command on each graph that has no record yet.

    Args:
        graphs: The names of the datasets.
        options: The folder of the results, the device, the seed and the folder of the datasets.
        fresh: Time again what has a record.
        console: Where each time is printed.
    """
    for graph in graphs:
        file = options.out / FOLDER / f"{graph}-{options.device.type}.json"
        if fresh or not file.exists():
            record = time_command(graph, options)
            with atomic_file(file) as temporary:
                temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            console.print(f"{graph}: {record['seconds']:.1f} s", highlight=False)


def time_command(graph: str, options: Options) -> dict[str, Any]:
    """Run ``rawlsgcn auto`` on the paper's split of a graph in a process of its own.

    Args:
        graph: The name of the dataset.
        options: As in :func:`time_commands`.

    Returns:
        The record: ``seconds`` of the whole command, from the start of Python to its end, of which
        ``search_seconds`` are the search; ``peak_memory_mb``; the command and the machine.

    Raises:
        RawlsError: If the command fails.
    """
    words = ["auto", "--dataset", graph, "--evaluate", "all", "--device", options.device.type]
    words += ["--seed", str(options.seed)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        root = [] if options.root is None else ["--data-root", str(options.root)]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "rawlsgcn", *words, *root, "--json", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            raise RawlsError(f"rawlsgcn auto failed on {graph}: {done.stderr.strip()}")
        figures = json.loads(file.read_text(encoding="utf-8"))
    return {
        "graph": graph,
        "seconds": seconds,
        "search_seconds": sum(figures["seconds"].values()),
        "peak_memory_mb": figures["peak_memory_mb"],
        **environment(options.device),
        "command": " ".join(["rawlsgcn", *words]),
    }


def read_times(out: Path) -> list[dict[str, Any]]:
    """Read the records of :func:`time_command` in a folder, in the order of their names."""
    return read_files(out / FOLDER, ("graph", "search_seconds"), "times")
