"""Folders of trained models: a configuration beside weights in safetensors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch_geometric.data import Data

from rawlsgcn import fit
from rawlsgcn.experiments.saved_models import load_model
from rawlsgcn.graphs import check

from ..reader import Files, Reader
from . import graphs as tiny


@cache
def _graph() -> Data:
    parts = {key: torch.from_numpy(mask) for key, mask in tiny.MASKS.items()}
    return check(
        Data(
            x=torch.from_numpy(tiny.X).float(),
            y=torch.from_numpy(tiny.Y),
            edge_index=torch.stack([torch.from_numpy(tiny.SOURCE), torch.from_numpy(tiny.TARGET)]),
            **parts,
        )
    )


def _seeds() -> list[Files]:
    seeds = []
    for method in ("gcn", "rawlsgcn-graph", "rawlsgcn-grad", "advfair", "demo-net", "tail-gnn"):
        result = fit(_graph(), method, seeds=2, epochs=1, hidden_channels=2)
        with TemporaryDirectory() as folder:
            result.write_model(Path(folder))
            seeds.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    return seeds


def _read(folder: Path) -> object:
    return load_model(folder).predict(_graph())


READERS = [Reader("model", _seeds, _read, ("config.json", ".safetensors"))]
