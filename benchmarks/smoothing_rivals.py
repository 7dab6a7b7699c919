"""Rivals of smoothing on the same shards: they are read into memory, then the clock starts."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rawlsgcn.graphs.shards.shards import Shards


def sign_seconds(shards: Shards, steps: int) -> float:
    """Time torch_geometric's transform of so many products with Â, with all of torch's threads."""
    from torch_geometric.data import Data
    from torch_geometric.transforms import SIGN

    edge_index, x = read_edges(shards), read_array(shards, "x")
    data = Data(x=x, edge_index=edge_index, num_nodes=shards.num_nodes)
    return seconds_of(lambda: SIGN(steps)(data))


def scipy_seconds(shards: Shards, steps: int, columns: int) -> float:
    """Time products of a float32 matrix with 32-bit indices, on one core."""
    from scipy import sparse

    parts, nodes = shards.open_all(), shards.num_nodes
    column = np.concatenate([part.column for part in parts])
    counts = np.concatenate([np.diff(part.row_start) for part in parts])
    row_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    values = np.full(len(column), 0.1, dtype=np.float32)
    matrix = sparse.csr_array((values, column, row_start), shape=(nodes, nodes))
    block = np.random.default_rng(0).random((nodes, columns), dtype=np.float32)

    def multiply() -> None:
        right = block
        for _ in range(steps):
            right = matrix @ right

    matrix @ block  # as ours, a first one untimed
    return seconds_of(multiply)


def read_edges(shards: Shards) -> Tensor:
    """Read the edge index of all shards."""
    parts = shards.open_all()
    counts = np.concatenate([np.diff(part.row_start) for part in parts])
    row = np.repeat(np.arange(shards.num_nodes), counts)
    column = np.concatenate([part.column for part in parts]).astype(np.int64)
    return torch.from_numpy(np.stack([row, column]))


def read_array(shards: Shards, name: str) -> Tensor:
    """Read an array of a row for each node of all shards."""
    pieces = [np.asarray(getattr(part, name)) for part in shards.open_all()]
    return torch.from_numpy(np.concatenate(pieces))


def seconds_of(action: Callable[[], object]) -> float:
    """Time an action."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
