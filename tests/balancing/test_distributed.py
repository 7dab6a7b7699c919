"""Balancing shards in one process; tests/test_distributed.py has two."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.kernels import without_kernels
from rawlsgcn._core.memory import code_memory
from rawlsgcn.balancing import balance, distributed
from rawlsgcn.balancing.distributed import balance_shards
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.arc_blocks import ArcBlocks
from rawlsgcn.graphs.shards.shards import Shard


def arcs_that_do_not_fit(opened: list[Shard], memory: int, device: torch.device) -> ArcBlocks:
    """Arcs for which no memory is left, read in blocks of a few."""
    return ArcBlocks(opened, 0, device, block_size=1000)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 3), st.booleans())
def test_shards_give_what_balance_gives(graph: Data, count: int, read: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if read:
            patch.setattr(distributed, "ArcBlocks", arcs_that_do_not_fit)
        shards = write_shards(graph, min(count, graph.num_nodes), folder)
        found = balance_shards(shards, tol=1e-12)
    assert (found.first, found.last) == (0, graph.num_nodes)
    whole = balance(
        graph.edge_index, graph.get("edge_weight"), num_nodes=graph.num_nodes, tol=1e-12
    )
    assert found.residual <= 1e-10
    torch.testing.assert_close(found.scale, whole.scale, rtol=1e-9, atol=0)


def edges(pairs: list[tuple[int, int]], weight: list[float] | None = None) -> Data:
    index = torch.tensor(sorted(pairs)).t()
    return Data(
        edge_index=index,
        num_nodes=4,
        edge_weight=None if weight is None else torch.tensor(weight),
    )


def test_what_cannot_be_balanced_is_told(tmp_path: Path) -> None:
    two_ways = [(0, 1), (1, 0)]
    with pytest.raises(RawlsError, match="is not symmetric"):
        balance_shards(write_shards(edges([*two_ways, (2, 3)]), 1, tmp_path))
    with pytest.raises(RawlsError, match="is not symmetric"):
        balance_shards(write_shards(edges(two_ways, [1.0, 2.0]), 1, tmp_path))
    with pytest.raises(RawlsError, match="1 self-loops"):
        balance_shards(write_shards(edges([*two_ways, (2, 2)]), 1, tmp_path))
    with pytest.raises(RawlsError, match="is not symmetric"):
        balance_shards(write_shards(edges([*two_ways, (2, 3)]), 2, tmp_path))
    shards = write_shards(edges(two_ways), 1, tmp_path)
    with pytest.raises(RawlsError, match="tol must be a number of at least 0"):
        balance_shards(shards, tol=float("nan"))
    for limits in {"tol": "small"}, {"tol": None}, {"max_iterations": 0}, {"max_iterations": 2.5}:
        with pytest.raises(RawlsError, match=f"{next(iter(limits))} must be a"):
            balance_shards(shards, **limits)
    for device in ("tpu", None, "meta", "cuda:99", 3.5):
        with pytest.raises(RawlsError, match=r"unknown device|there is no GPU"):
            balance_shards(shards, device=device)
    np.save(tmp_path / "00000-column.npy", np.array([7, 0], dtype=np.int32))
    with pytest.raises(RawlsError, match="names nodes outside 0 to 3"):
        balance_shards(shards)


def test_arcs_that_do_not_fit_are_read_again_and_progress_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = synthetic(2000, average_degree=12, features=6, words=2)
    shards = write_shards(graph, 3, tmp_path)
    seen: list[tuple[int, int, str | None]] = []
    whole = balance_shards(shards, progress=lambda *call: seen.append(call))
    monkeypatch.setattr(distributed, "ArcBlocks", arcs_that_do_not_fit)
    read = balance_shards(shards)
    with without_kernels():
        slow = balance_shards(shards)
    for other in (read, slow):
        torch.testing.assert_close(other.scale, whole.scale, rtol=1e-9, atol=0)
        assert other.converged
        assert other.held_bytes < whole.held_bytes
    done = [call[0] for call in seen]
    assert done == sorted(done)
    assert done[-1] == 100
    assert f"after {whole.iterations} products" in seen[-1][2]


def test_too_little_memory_is_an_error_that_names_the_least(tmp_path: Path) -> None:
    shards = write_shards(synthetic(200, features=6, words=2), 2, tmp_path)
    with pytest.raises(RawlsError, match=r"1 MB of memory are too little .* at least [\d,]+ MB"):
        balance_shards(shards, memory=10**6)
    balance_shards(shards, memory=code_memory() + 10 * 10**6)
