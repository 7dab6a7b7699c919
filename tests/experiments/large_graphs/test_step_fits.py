"""Training on smoothed rows of shards: the metrics and the saved model are those of the graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import rawlsgcn as rg
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.experiments.large_graphs import step_fits
from rawlsgcn.experiments.large_graphs.step_fits import fit_rows, usual_epochs
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.shard_graph import ShardNodes
from rawlsgcn.methods import find_method
from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm


def fitted(graph: Any, out: Path, shards: Path, **how: Any) -> dict[str, Any]:
    settings = find_method("smoothed-mlp").defaults
    folder = write_shards(graph, 2, shards)
    rows = smooth_shards(folder, SmoothedForm.of(folder, settings)).rows
    return fit_rows(ShardNodes.of(folder), rows, settings, out, row_normalized=True, **how)


def test_the_saved_model_gives_the_metrics_on_the_graph_in_memory(tmp_path: Path) -> None:
    graph = rg.synthetic(600)
    metrics = fitted(graph, tmp_path / "model", tmp_path / "shards", batch_size=30, epochs=15)
    logits = rg.load_model(tmp_path / "model").logits(graph)
    degree = torch.bincount(graph.edge_index[0], minlength=600)
    expected = evaluate_run(logits, graph.y, degree, graph.test_mask, graph.val_mask)
    for name in ("accuracy", "bias", "temperature", "low_degree_accuracy", "loss_slope"):
        assert metrics[name] == pytest.approx(getattr(expected, name), rel=1e-3), name
    assert metrics["steps"] == metrics["epochs"] * 4
    assert metrics == json.loads((tmp_path / "model" / "metrics.json").read_text())


def test_rows_learn_as_well_as_the_whole_graph(tmp_path: Path) -> None:
    graph = rg.synthetic(1000)
    metrics = fitted(graph, tmp_path / "model", tmp_path / "shards", epochs=60)
    assert metrics["steps"] == 60
    whole = rg.fit(graph, "smoothed-mlp", seeds=1, device="cpu", epochs=60)
    assert abs(metrics["accuracy"] - whole.accuracy.mean) < 2


def test_epochs_are_named_or_follow_from_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = rg.synthetic(300)
    monkeypatch.setattr(step_fits, "USUAL_STEPS", int(graph.train_mask.sum()) * 2)
    first = fitted(graph, tmp_path / "a", tmp_path / "shards", batch_size=2)
    assert first["epochs"] == 4
    second = fitted(graph, tmp_path / "b", tmp_path / "shards", epochs=2)
    assert second["epochs"] == 2


def test_usual_epochs_make_enough_steps_and_not_too_many() -> None:
    assert usual_epochs(1, 200) == 200
    assert usual_epochs(25, 200) == 80
    assert usual_epochs(2441, 200) == 3
    assert usual_epochs(2441, 2) == 2
