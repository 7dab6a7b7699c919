"""Folders of trained models: a configuration beside weights in safetensors."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch_geometric.data import Data

from rawlsgcn import Result, fit
from rawlsgcn.experiments.saved_models import load_model
from rawlsgcn.graphs import check
from rawlsgcn.methods import find_method
from rawlsgcn.methods.ensemble import EnsembleRun, EnsembleSettings, joined_states

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
    methods = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad", "advfair", "demo-net", "tail-gnn")
    results = [fit(_graph(), method, seeds=2, epochs=1, hidden_channels=2) for method in methods]
    smoothed: tuple[dict[str, Any], ...] = (
        {"features": "tf-idf", "min_degree": 3},
        {"inputs": "adjacency"},
        {"inputs": "both", "label_smoothing": 0.1},
    )
    for own in smoothed:
        small = {**own, "hidden_channels": 2, "epochs": 1}
        results.append(fit(_graph(), "smoothed-mlp", seeds=2, method_settings=small))
    return [*map(_files, results), _files(_ensemble(results[0], *results[-3:]))]


def _ensemble(*results: Result) -> Result:
    """One run of each result as an ensemble, as ``auto`` saves it."""
    runs = []
    for result in results:
        settings = find_method(result.method).configure(result.settings)
        runs.append(EnsembleRun(result.method, settings, 1 / len(results)))
    return replace(
        results[0],
        method="auto",
        settings=asdict(EnsembleSettings.of(runs, 1.5)),
        seeds=[0],
        states=[joined_states([result.states[0] for result in results])],
        logits=results[0].logits[:1],
        run_metrics=results[0].run_metrics[:1],
    )


def _files(result: Result) -> Files:
    with TemporaryDirectory() as folder:
        result.write_model(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _read(folder: Path) -> object:
    return load_model(folder).predict(_graph())


READERS = [Reader("model", _seeds, _read, ("config.json", ".safetensors"))]
