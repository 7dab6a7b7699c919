"""Rivals in processes of their own, on the same shards: read them all, then the clock starts.

    python -m benchmarks.scale.rivals NAME SHARDS

prints the seconds. ``sign`` is torch_geometric's transform of ten products with Â, ``scipy`` ten
products of a block of 16 columns on one core, ``gcn`` an epoch of a two-layer ``GCNConv`` network
on the whole graph.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rawlsgcn.graphs.shards import Shards

from .phases import FEATURES

STEPS, BLOCK, HIDDEN = 10, 16, 64
#: The largest number of arcs that each rival is given, so that it fits into 20 GB.
LARGEST = {"sign": 10**7, "scipy": 10**8, "gcn": 10**7}
NAMES = {
    "sign": f"torch_geometric's SIGN, {STEPS} products",
    "scipy": f"scipy, {STEPS} products of {BLOCK} columns",
    "gcn": "torch_geometric's GCNConv, one epoch on the whole graph",
}


def _sign(shards: Shards) -> float:
    from torch_geometric.data import Data
    from torch_geometric.transforms import SIGN

    edge_index, x, _, _ = _read(shards)
    data = Data(x=x, edge_index=edge_index, num_nodes=shards.num_nodes)
    return _seconds(lambda: SIGN(STEPS)(data))


def _scipy(shards: Shards) -> float:
    import scipy.sparse as sp

    parts = shards.open_all()
    ends = np.cumsum([0, *(len(part.column) for part in parts)])
    starts = [part.row_start[:-1] + end for part, end in zip(parts, ends, strict=False)]
    row_start = np.concatenate([*starts, ends[-1:]])
    column = np.concatenate([part.column for part in parts])
    nodes = shards.num_nodes
    ones = np.ones(len(column), dtype=np.float32)
    matrix = sp.csr_matrix((ones, column, row_start), shape=(nodes, nodes))
    block = np.random.default_rng(0).random((nodes, BLOCK), dtype=np.float32)

    def multiply() -> None:
        right = block
        for _ in range(STEPS):
            right = matrix @ right

    return _seconds(multiply)


def _gcn(shards: Shards) -> float:
    from torch_geometric.nn import GCNConv

    edge_index, x, y, train = _read(shards)
    first, second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, shards.classes)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)

    def epoch() -> None:
        optimizer.zero_grad()
        out = second(first(x, edge_index).relu(), edge_index)
        loss = torch.nn.functional.cross_entropy(out[train], y[train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return _seconds(epoch)


def _read(shards: Shards) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Read edges, features, labels and training nodes of all shards."""
    parts = shards.open_all()
    row = np.concatenate(
        [
            part.first + np.repeat(np.arange(part.last - part.first), np.diff(part.row_start))
            for part in parts
        ]
    )
    column = np.concatenate([part.column for part in parts]).astype(np.int64)
    pieces = {
        name: np.concatenate([np.asarray(getattr(part, name)) for part in parts])
        for name in ("x", "y", "split")
    }
    edge_index = torch.from_numpy(np.stack([row, column]))
    train = torch.from_numpy(pieces["split"] == 1).nonzero().view(-1)
    return edge_index, torch.from_numpy(pieces["x"]), torch.from_numpy(pieces["y"]), train


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


_RIVALS = {"sign": _sign, "scipy": _scipy, "gcn": _gcn}

if __name__ == "__main__":
    name, folder = sys.argv[1:]
    print(json.dumps({"seconds": _RIVALS[name](Shards(Path(folder)))}))
