"""Sampling: edges drawn a second against a naive sampler, and a large graph trained on samples.

The large graph is trained in a separate process, so that its peak memory is not that of another
measurement.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rawlsgcn.graphs import synthetic
from rawlsgcn.sampling import Adjacency, Neighborhoods
from rawlsgcn.sampling.neighbor_drawing import Sample

from .measurement import Measurement, Timing, timed

Array = NDArray[Any]

SEEDS, FAN_OUT = 1024, (15, 10)
TRAINING_NUM_NEIGHBORS, RIVAL_STEPS = (10, 10), 5
#: (nodes, average degree) of the graph that is sampled and of the one that is trained on.
SAMPLED, TRAINED = (560_000, 20.0), (2_050_000, 20.0)


def measurements(
    limit: int, repeats: int, progress: Callable[[str], None]
) -> Iterator[Measurement]:
    """Measure the sampler on 11 million arcs, and training on 40 million if ``limit`` allows it."""
    nodes, degree = SAMPLED if limit >= 10**7 else (5000, 20.0)
    progress("sampling")
    yield sampler(nodes, degree, max(repeats, 5))
    nodes, degree = TRAINED if limit >= 4 * 10**7 else (5000, 20.0)
    progress("sampled training on a large graph")
    yield large_training(nodes, degree)


class NaiveNeighborhoods(Neighborhoods):
    """The obvious vectorized sampler: a random number for each arc of each row, and a sort."""

    def sample(
        self, seeds: Array, num_neighbors: Sequence[int], key: int, *, redraw: bool = False
    ) -> Sample:
        self._random = np.random.default_rng(key)
        return super().sample(seeds, num_neighbors, key, redraw=redraw)

    def _draw(self, rows: Array, k: int, key: int) -> tuple[Array, Array]:
        arcs, degree = super()._draw(rows, -1, key)
        row = np.repeat(np.arange(len(rows)), degree)
        order = np.argsort(row + self._random.random(len(arcs)))
        rank = np.arange(len(arcs)) - np.repeat(np.cumsum(degree) - degree, degree)
        return arcs[order][rank < k], np.minimum(degree, k)

    def _enter(self, nodes: Array, count: int) -> Array:
        met = np.unique(nodes)
        self._place[met] = np.arange(count, count + len(met))
        return met


def sampler(nodes: int, degree: float, repeats: int) -> Measurement:
    """Measure the edges sampled around 1,024 seeds, fan-out 15 and 10, in one process."""
    graph = synthetic(nodes, average_degree=degree, features=6, words=1)
    adjacency = Adjacency.of_symmetric(graph.edge_index, None, nodes)
    del graph
    random = np.random.default_rng(0)
    seeds = [random.choice(nodes, min(SEEDS, nodes // 2), replace=False) for _ in range(5)]
    drawn: list[int] = []

    def draw(how: Neighborhoods) -> Callable[[], None]:
        def act() -> None:
            drawn.clear()
            for key, each in enumerate(seeds):
                sample = how.sample(each, FAN_OUT, key)
                drawn.append(sum(len(hop.arc) for hop in sample.hops))

        return act

    cpu = torch.device("cpu")
    ours = timed(draw(Neighborhoods(adjacency)), repeats, cpu, 1 / len(seeds))
    edges = sum(drawn) / len(seeds)
    rival = timed(draw(NaiveNeighborhoods(adjacency)), repeats, cpu, 1 / len(seeds))
    arcs = int(adjacency.row_start[-1])
    rate, naive = edges / ours.median, edges / rival.median
    return Measurement(
        "sampling",
        f"{arcs / 1e6:.1f} million arcs, 1,024 seeds, fan-out 15 and 10: "
        f"{rate / 1e6:.1f} million edges a second",
        ours=ours,
        rival=rival,
        rival_name=f"a random number for every arc and a sort: {naive / 1e6:.2f} million a second",
        goal="at least 2 million edges a second",
        facts={"arcs": arcs, "edges_per_batch": edges, "edges_per_second": rate},
    )


def large_training(nodes: int, degree: float) -> Measurement:
    """Measure RawlsGCN-Grad on samples of a large graph from shards on disk."""
    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "shards"
        made = _child("write", str(nodes), str(degree), str(shards))
        measured = _child("train", str(shards))
    return Measurement(
        "sampling",
        f"{made['nodes'] / 1e6:.2f} million nodes, {made['arcs'] / 1e6:.1f} million arcs: a "
        f"training step, peak {measured['peak_memory_mb'] / 1024:.2f} GB resident",
        ours=Timing(measured["ours"]),
        rival=Timing(measured["naive"]),
        rival_name="the same step with the naive sampler",
        goal="under 8 GB resident",
        facts={**made, **{k: v for k, v in measured.items() if k not in ("ours", "naive")}},
    )


def _child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.sampling", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _write(nodes: int, degree: float, folder: str) -> dict[str, Any]:
    from rawlsgcn._core.machine import peak_memory_mb
    from rawlsgcn.graphs.shards import write_shards

    graph = synthetic(nodes, average_degree=degree, features=64, words=8, split="random")
    shards = write_shards(graph, 1, folder)
    return {
        "nodes": shards.num_nodes,
        "arcs": shards.num_arcs,
        "making_peak_memory_mb": peak_memory_mb(torch.device("cpu")),
    }


def _train(folder: str) -> dict[str, Any]:
    """Balance, train for an epoch and evaluate; return the seconds of each and the peak memory."""
    from rawlsgcn._core.machine import peak_memory_mb
    from rawlsgcn.balancing.distributed import balance_shards
    from rawlsgcn.evaluation.run_metrics import evaluate_run
    from rawlsgcn.graphs.shards.shards import Shards
    from rawlsgcn.methods import find_method
    from rawlsgcn.training.sampled.sources import Source
    from rawlsgcn.training.sampled.trainer import SampledTraining

    cpu = torch.device("cpu")
    shards = Shards(folder)
    start = time.perf_counter()
    scaling = balance_shards(shards, tol=1e-6)
    balance_seconds = time.perf_counter() - start
    shards.write_scale(0, scaling.scale.numpy())
    method = find_method("rawlsgcn-grad")
    source = Source.of_shards(shards)
    training = SampledTraining(
        method, source, method.defaults, num_neighbors=TRAINING_NUM_NEIGHBORS, batch_size=SEEDS
    )
    ours, read = _steps(training, 0, training.steps)
    start = time.perf_counter()
    logits = training.logits()
    evaluation_seconds = time.perf_counter() - start
    degree, masks = torch.from_numpy(source.adjacency.degree), source.masks
    judgement = evaluate_run(logits, source.y, degree, masks["test_mask"], masks["val_mask"])
    peak = peak_memory_mb(cpu)  # before the rival, whose memory is not measured
    training.maker.neighborhoods = NaiveNeighborhoods(source.adjacency)
    naive, _ = _steps(training, 1, RIVAL_STEPS)
    return {
        "ours": ours,
        "naive": naive,
        "peak_memory_mb": peak,
        "training_nodes": len(training.train),
        "nodes_per_step": read,
        "balance_seconds": balance_seconds,
        "balance_products": scaling.iterations,
        "balance_held_mb": scaling.held_bytes / 2**20,
        "nanoseconds_per_arc_and_product": balance_seconds
        / scaling.iterations
        / shards.num_arcs
        * 1e9,
        "evaluation_seconds": evaluation_seconds,
        "steps_per_epoch": training.steps,
        "accuracy_after_one_epoch": judgement.accuracy,
    }


def _steps(training: Any, epoch: int, count: int) -> tuple[list[float], float]:
    """Time single steps, sampling included, and count the nodes whose features one reads."""
    seconds, read = [], []
    batches = training.batches(epoch)
    for number in range(min(count, training.steps)):
        start = time.perf_counter()
        batch = next(batches)
        training.step(batch, epoch, number)
        seconds.append(time.perf_counter() - start)
        read.append(len(batch.blocks.nodes))
    return seconds, sum(read) / len(read)


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    answer = _write(int(given[0]), float(given[1]), given[2]) if what == "write" else _train(*given)
    print(json.dumps(answer))
