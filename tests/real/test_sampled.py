"""Sampled training on Amazon-Photo, fan-out 10 and 10, beside the whole-graph run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rawlsgcn.api import fit
from rawlsgcn.evaluation.judgement import judge
from rawlsgcn.graphs import load
from rawlsgcn.methods import find
from rawlsgcn.training.sampled import SampledTraining
from rawlsgcn.training.sources import Source

SEEDS = 5


@pytest.mark.parametrize("name", ["rawlsgcn-graph", "rawlsgcn-grad"])
def test_samples_do_almost_as_well_as_the_whole_graph(name: str, data_root: Path) -> None:
    graph = load("amazon-photo", root=data_root)
    whole = fit(graph, name, lr=0.05, epochs=100, seeds=SEEDS, device="cpu").judgements
    source, method = Source.of(graph), find(name)
    degree = torch.from_numpy(source.adjacency.degree)
    sampled = []
    for seed in range(SEEDS):
        training = SampledTraining(
            method, source, method.defaults, fan_out=[10, 10], batch_size=1024, seed=seed
        )
        for epoch in range(100):
            training.epoch(epoch)
        logits = training.logits()
        sampled.append(judge(logits, graph.y, degree, graph.test_mask, graph.val_mask))
    accuracy, bias = (
        [np.mean([getattr(run, figure) for run in runs]) for runs in (sampled, whole)]
        for figure in ("accuracy", "bias")
    )
    assert accuracy[0] > accuracy[1] - 1.5
    assert abs(bias[0] / bias[1] - 1) < 0.3
