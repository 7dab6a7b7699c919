"""Rivals in processes of their own, on the same shards: read them all, then the clock starts.

    python -m benchmarks.scale.rivals NAME SHARDS

prints the seconds. ``sign`` is torch_geometric's transform of ten products with Â, ``scipy`` ten
products of a block of 16 columns on one core, ``gcn`` an epoch of a two-layer ``GCNConv`` network
on the whole graph.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from rawlsgcn.graphs.shards.shards import Shards

from ..smoothing_rivals import read_array, read_edges, scipy_seconds, seconds_of, sign_seconds
from .phases import FEATURES

STEPS, BLOCK, HIDDEN = 10, 16, 64
#: The largest number of arcs that each rival is given, so that it fits into 20 GB.
LARGEST = {"sign": 10**7, "scipy": 10**8, "gcn": 10**7}
NAMES = {
    "sign": f"torch_geometric's SIGN, {STEPS} products",
    "scipy": f"scipy, {STEPS} products of {BLOCK} columns",
    "gcn": "torch_geometric's GCNConv, one epoch on the whole graph",
}


def _gcn(shards: Shards) -> float:
    from torch_geometric.nn import GCNConv

    edge_index = read_edges(shards)
    x, y, split = (read_array(shards, name) for name in ("x", "y", "split"))
    train = (split == 1).nonzero().view(-1)
    first, second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, shards.classes)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)

    def epoch() -> None:
        optimizer.zero_grad()
        out = second(first(x, edge_index).relu(), edge_index)
        loss = torch.nn.functional.cross_entropy(out[train], y[train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return seconds_of(epoch)


_RIVALS: dict[str, Callable[[Shards], float]] = {
    "sign": lambda shards: sign_seconds(shards, STEPS),
    "scipy": lambda shards: scipy_seconds(shards, STEPS, BLOCK),
    "gcn": _gcn,
}

if __name__ == "__main__":
    name, folder = sys.argv[1:]
    print(json.dumps({"seconds": _RIVALS[name](Shards(Path(folder)))}))
