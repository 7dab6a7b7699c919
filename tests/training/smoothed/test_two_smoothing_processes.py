"""Two processes, one of which is lost once: the rows of one process, by halo and by all-gather."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected
from two_smoothing_processes import FORM

from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import open_smoothed

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "1"]
pytestmark = pytest.mark.slow
NODES = 1000


def ring() -> Data:
    """A graph whose nodes have neighbors of near numbers, and weights."""
    node = torch.arange(NODES)
    steps = [torch.stack([node, (node + step) % NODES]) for step in (1, 2, 5)]
    edge_index = to_undirected(torch.cat(steps, 1)).long()
    weight = 1.0 + (edge_index[0] * edge_index[1]) % 3
    x = torch.rand(NODES, 40, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=edge_index, edge_weight=weight, num_nodes=NODES)


@pytest.fixture(scope="module")
def graphs() -> dict[str, Data]:
    return {"halo": ring(), "all-gather": synthetic(NODES, average_degree=12, features=40, words=4)}


@pytest.fixture(scope="module")
def both(graphs: dict[str, Data], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("two").resolve()
    for kind, graph in graphs.items():
        write_shards(graph, 4, folder / kind)
    script = Path(__file__).parents[2] / "two_smoothing_processes.py"
    command = [*TORCHRUN, "--nproc-per-node", "2", str(script), *(str(folder / k) for k in graphs)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "exitcode: -9" in ran.stderr
    found = {kind: [np.load(folder / f"{kind}-{rank}.npz") for rank in (0, 1)] for kind in graphs}
    return {"folder": folder, **found}


@pytest.mark.parametrize("kind", ["halo", "all-gather"])
def test_the_rows_are_those_of_one_process(
    kind: str, graphs: dict[str, Data], both: dict[str, Any], tmp_path: Path
) -> None:
    two = open_smoothed(Shards(both["folder"] / kind), FORM)
    one = smooth_shards(write_shards(graphs[kind], 1, tmp_path), FORM).rows
    expected = one.read(0, NODES)
    assert np.abs(two.read(0, NODES) - expected).max() < 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["halo", "all-gather"])
def test_each_has_half_of_the_rows_and_the_fewer_bytes_are_moved(
    kind: str, both: dict[str, Any]
) -> None:
    for each in both[kind]:
        first, last = each["rows"]
        assert last - first == pytest.approx(NODES / 2, rel=0.1)
        assert each["kind"] == kind
        # The second start goes on where the first one was lost.
        blocks = [[0, 8], [8, 24], [24, 40]]
        assert each["blocks"].tolist() == (blocks[1:] if kind == "halo" else blocks)
        assert each["every"] == NODES
        if kind == "halo":
            # Five nodes beyond each end of a half of the ring.
            assert each["held"] == last - first + 10
            assert each["moved"] == 20
        else:
            assert each["held"] == each["moved"] == NODES


def test_nothing_is_left_beside_the_result(both: dict[str, Any]) -> None:
    for kind in ("halo", "all-gather"):
        folders = [path.name for path in (both["folder"] / kind).iterdir() if path.is_dir()]
        assert folders == [FORM.name]
