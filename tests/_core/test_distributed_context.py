"""Two processes on one machine, started by torchrun: the same numbers as one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Data
from two_processes import sampled_gradients

from rawlsgcn._core.distributed_context import DistributedContext
from rawlsgcn.balancing import balance
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.training.sampled.sources import Source

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graph() -> Data:
    # Large enough that pages of the files tell who reads what.
    return synthetic(40_000, average_degree=16, features=20, words=4, split="random")


@pytest.fixture(scope="module")
def both(graph: Data, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("shards").resolve()
    write_shards(graph, 4, folder)
    script = Path(__file__).parents[1] / "two_processes.py"
    command = [*TORCHRUN, "--nproc-per-node", "2", str(script), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, timeout=120, env=environment)
    return folder, [np.load(folder / f"result-{rank}.npz") for rank in range(2)]


def test_the_balance_is_that_of_one_process(graph: Data, both: tuple[Path, list[Any]]) -> None:
    shards = Shards(both[0])
    x = np.concatenate([shard.scale for shard in shards.open_all()])
    whole = balance(graph.edge_index, num_nodes=graph.num_nodes, tol=1e-12).scale
    assert np.abs(x / whole.numpy() - 1).max() < 1e-10
    assert both[1][0]["residual"] == both[1][1]["residual"] <= 1e-12


def test_each_process_holds_half_of_the_rows(graph: Data, both: tuple[Path, list[Any]]) -> None:
    matrix = 4 * graph.edge_index.shape[1] + 8 * graph.num_nodes
    for result in both[1]:
        first, last = result["rows"]
        assert last - first == pytest.approx(graph.num_nodes / 2, rel=0.05)
        # Measured: pages of its own shards' matrices are in memory, of the others' none.
        assert result["own"] * 1024 == pytest.approx(matrix / 2, rel=0.1)
        assert result["others"] == 0
    assert both[1][0]["rows"][1] == both[1][1]["rows"][0]


def test_averaged_gradients_are_those_of_the_joined_batch(
    graph: Data, both: tuple[Path, list[Any]]
) -> None:
    whole = sampled_gradients(Source.of_shards(Shards(both[0])), DistributedContext()).numpy()
    size = np.abs(whole).max()
    for result in both[1]:
        assert np.abs(result["gradients"] - whole).max() < 1e-12 * size
