"""An edge list in CSV of any length into shards: the seconds and the memory of the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from rawlsgcn._core.atomic_files import atomic_file

from .phases import DEGREE
from .processes import spend
from .records import Options, machine_of

FEATURES, CLASSES, MEMORY = 16, 6, "4GB"
#: Rows that are drawn and written at a time.
_BLOCK = 10**6


def measure_reading(rows: int, options: Options, say: Callable[[str], None]) -> None:
    """Write random edges to a CSV file, read it into shards and keep the figures."""
    folder = options.work / f"csv-{rows}"
    folder.mkdir(parents=True)
    try:
        _write(rows, folder)
        line = f"shard --graph {folder}/edges.csv --features {folder}/x.npy"
        line += f" --labels {folder}/labels.csv --split 0.6,0.2,0.2 --memory {MEMORY}"
        line += f" --count {options.count} --out {folder}/shards"
        spent = spend(["-m", "rawlsgcn", *line.split()], folder / "log")
        assert spent is not None
        about = json.loads((folder / "shards" / "shards.json").read_text(encoding="utf-8"))
        record: dict[str, Any] = {
            "rows": rows,
            "bytes": (folder / "edges.csv").stat().st_size,
            "nodes": about["nodes"],
            "arcs": about["arcs"],
            "features": FEATURES,
            "command": "rawlsgcn " + line.replace(f"{folder}/", ""),
            **asdict(spent),
            "machine": machine_of("cpu"),
            "made_by": options.command,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    with atomic_file(options.out / f"csv-{rows}.json") as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    say(f"{rows:.0e} rows of CSV: {spent.seconds:.1f} s, {spent.peak_memory_mb:,.0f} MB")


def _write(rows: int, folder: Path) -> None:
    random, nodes = np.random.default_rng(0), rows // DEGREE
    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with csv.CSVWriter(folder / "edges.csv", schema) as writer:
        for first in range(0, rows, _BLOCK):
            ends = random.integers(nodes, size=(2, min(_BLOCK, rows - first)))
            writer.write(pa.table(list(ends), schema=schema))
    label = pa.table({"node": np.arange(nodes), "label": random.integers(CLASSES, size=nodes)})
    csv.write_csv(label, folder / "labels.csv")
    np.save(folder / "x.npy", random.random((nodes, FEATURES), dtype=np.float32))
