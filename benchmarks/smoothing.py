"""Smoothing shards on disk: ten steps, against ten scipy products and torch_geometric's SIGN.

Every run is a process of its own, so that its peak of memory is its own and nothing is warm but the
system's cache of files. Nodes are in random order: every arc reads a row from anywhere in memory.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rawlsgcn._core.machine import peak_memory_mb
from rawlsgcn.graphs.shards import Shards, write_shards

from .core_distance import core_distance
from .measurement import Measurement, Timing
from .smoothing_rivals import scipy_seconds, sign_seconds

SIZES = (10**5, 10**6, 10**7, 10**8)
#: SIGN keeps the result of every step, and 64-bit indices.
SIGN_LIMIT = 10**7
DEGREE, FEATURES, STEPS = 10, 100, 10


def measurements(
    limit: int, repeats: int, progress: Callable[[str], None]
) -> Iterator[Measurement]:
    """Measure smoothing of random graphs of rising size."""
    for size in SIZES:
        if size <= limit:
            progress(f"smoothing {size:.0e} arcs")
            with tempfile.TemporaryDirectory() as folder:
                yield from on_random(size, repeats, Path(folder, "shards"))


def on_random(arcs: int, repeats: int, folder: Path) -> Iterator[Measurement]:
    """Compare the smoothing of one random graph with its rivals, in turn."""
    made = _child("write", arcs, folder)
    threads = sorted({torch.get_num_threads(), 1}, reverse=True)
    rivals = ["scipy", *(["sign"] if arcs <= SIGN_LIMIT else [])]
    runs: dict[Any, list[dict[str, Any]]] = {each: [] for each in (*threads, *rivals)}
    steps_of: dict[int, list[float]] = {number: [] for number in threads}
    distances: list[float] = []
    for _ in range(repeats):
        for number in threads:
            runs[number].append(_child("smooth", folder, number))
        stepped = _child("steps", folder, *threads)
        distances.append(stepped["core_nanoseconds"])
        for number, took in zip(threads, stepped["seconds"], strict=True):
            steps_of[number].append(took)
        for rival in rivals:
            runs[rival].append(_child(rival, folder))
    for number in threads:
        ours = runs[number]
        steps = Timing(steps_of[number])
        whole = Timing([run["seconds"] for run in ours])
        facts = {
            **made,
            "threads": number,
            "features": FEATURES,
            "steps": STEPS,
            "step_nanoseconds_per_arc": steps.median / STEPS / made["arcs"] * 1e9,
            "seconds": whole.median,
            "nanoseconds_per_arc": whole.median / made["arcs"] * 1e9,
            "peak_memory_mb": max(run["peak_memory_mb"] for run in ours),
            "core_nanoseconds": distances,
        }
        for rival, took, what, words, goal in (
            ("scipy", steps, "in memory", f"{STEPS} scipy products", "at most 1.5"),
            ("sign", whole, "from files to files", "torch_geometric's SIGN in memory", ""),
        ):
            if rival not in runs:
                continue
            peak = max(run["peak_memory_mb"] for run in runs[rival])
            yield Measurement(
                "smoothing" + (", on one core" if number == 1 else ""),
                f"{made['arcs']:.1e} arcs, {FEATURES} features: {STEPS} steps {what}",
                ours=took,
                rival=Timing([run["seconds"] for run in runs[rival]]),
                rival_name=words,
                goal=goal,
                inverse=True,
                facts={**facts, "rival_peak_memory_mb": peak},
            )


def _child(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.smoothing", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _write(arcs: str, folder: str) -> dict[str, Any]:
    """Write shards of a random graph without self-loops, about ten arcs a node."""
    from scipy import sparse
    from torch_geometric.data import Data

    random, nodes = np.random.default_rng(0), int(arcs) // DEGREE
    one = random.integers(0, nodes, int(arcs) // 2, dtype=np.int32)
    other = (one + random.integers(1, nodes, len(one))).astype(np.int64) % nodes
    ends = np.concatenate([one, other]).astype(np.int32)
    matrix = sparse.csr_array(
        (np.ones(len(ends), dtype=np.float32), (ends, np.roll(ends, len(one)))),
        shape=(nodes, nodes),
    )
    row = np.repeat(np.arange(nodes), np.diff(matrix.indptr))
    graph = Data(
        edge_index=torch.from_numpy(np.stack([row, matrix.indices.astype(np.int64)])),
        x=torch.from_numpy(random.random((nodes, FEATURES), dtype=np.float32)),
        num_nodes=nodes,
    )
    shards = write_shards(graph, 2, folder)
    return {"nodes": shards.num_nodes, "arcs": shards.num_arcs}


def _smooth(folder: str, threads: str) -> dict[str, Any]:
    """Time the whole of it, from files to files."""
    from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
    from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm

    torch.set_num_threads(int(threads))
    shards = Shards(folder)
    form = SmoothedForm("renormalized", 0.1, STEPS, row_normalized=True)
    start = time.perf_counter()
    smooth_shards(shards, form)
    record = _record(time.perf_counter() - start)
    shutil.rmtree(shards.folder / form.name)
    return record


def _steps(folder: str, *threads: str) -> dict[str, Any]:
    """Time the steps alone, in memory, with each number of threads in turn on the same matrices.

    So both see the machine in the same state, of which the distance of its cores is a part.
    """
    from rawlsgcn._core.sparse import as_tensor, empty_array
    from rawlsgcn.graphs.shards.arc_blocks import ArcBlocks
    from rawlsgcn.training.smoothed.memory_plan import LINE, padded
    from rawlsgcn.training.smoothed.smoothing_step import smooth_rows

    cpu, opened = torch.device("cpu"), Shards(folder).open_all()
    arcs = ArcBlocks(opened, sum(shard.graph_bytes for shard in opened), cpu)
    shape = (arcs.last, padded(FEATURES, LINE // 4))
    held, out, added = (as_tensor(empty_array(shape, cpu, torch.float32)) for _ in range(3))
    factor = torch.full((arcs.last,), 1 / DEGREE)
    held.fill_(1.0)
    added.fill_(0.1)
    for matrix in (out, *(block.column for block in arcs)):
        matrix.sum()  # into memory
    seconds = []
    for number in map(int, threads):
        torch.set_num_threads(number)
        # The first step, untimed, starts the threads.
        for step in range(-1, STEPS):
            if step == 0:
                start = time.perf_counter()
            for block in arcs:
                smooth_rows(block, held, held, factor, added, out)
            held, out = out, held
        seconds.append(time.perf_counter() - start)
        if not torch.equal(held, held[:, :1].expand_as(held)):
            raise RuntimeError("columns that began alike ended differently")
    time.sleep(0.5)  # until the threads have stopped waiting for work
    distance = core_distance() if len(threads) > 1 else 0.0
    return {"seconds": seconds, "core_nanoseconds": distance}


def _scipy(folder: str) -> dict[str, Any]:
    return _record(scipy_seconds(Shards(folder), STEPS, FEATURES))


def _sign(folder: str) -> dict[str, Any]:
    return _record(sign_seconds(Shards(folder), STEPS))


def _record(seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "peak_memory_mb": peak_memory_mb(torch.device("cpu"))}


if __name__ == "__main__":
    actions: dict[str, Callable[..., Any]] = {
        "write": _write,
        "smooth": _smooth,
        "steps": _steps,
        "scipy": _scipy,
        "sign": _sign,
    }
    print(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
