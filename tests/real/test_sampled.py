"""Sampled training on Amazon-Photo, fan-out 10 and 10, beside the whole-graph run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rawlsgcn.evaluation.judgement import judge
from rawlsgcn.graphs import load
from rawlsgcn.methods import find
from rawlsgcn.training.sampled import SampledTraining
from rawlsgcn.training.sources import Source

ROOT = Path(__file__).parents[2]
TITLES = {"rawlsgcn-graph": "RawlsGCN-Graph", "rawlsgcn-grad": "RawlsGCN-Grad"}


def kept(name: str) -> Any:
    path = ROOT / "results" / "sampled" / f"amazon-photo-{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def means(method: str, seeds: int) -> tuple[list[float], list[float]]:
    """Accuracy and bias of the sampled and of the whole-graph runs of the first seeds."""
    sampled = [kept(f"{method}-{seed}") for seed in range(seeds)]
    whole = kept(f"{method}-whole")
    both = [
        [np.mean([run[name] for run in sampled]), np.mean(whole[name]["runs"][:seeds])]
        for name in ("accuracy", "bias")
    ]
    return both[0], both[1]


@pytest.mark.parametrize("method", TITLES)
def test_samples_do_almost_as_well_as_the_whole_graph(method: str) -> None:
    accuracy, bias = means(method, 10)
    assert accuracy[0] > accuracy[1] - 1.5
    assert abs(bias[0] / bias[1] - 1) < 0.3


@pytest.mark.parametrize("method", TITLES)
def test_the_page_shows_the_kept_runs(method: str) -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for seeds in (5, 10):
        (a, whole_a), (b, whole_b) = means(method, seeds)
        row = f"| {TITLES[method]} | 0 to {seeds - 1} | {a:.1f} | {whole_a:.1f} | {b:.3f} | "
        assert f"{row}{whole_b:.3f} |" in page


@pytest.mark.parametrize("method", TITLES)
def test_a_kept_run_comes_out_again(method: str, data_root: Path) -> None:
    graph = load("amazon-photo", root=data_root)
    source, chosen = Source.of(graph), find(method)
    training = SampledTraining(
        chosen, source, chosen.defaults, fan_out=[10, 10], batch_size=1024, seed=4
    )
    for epoch in range(100):
        training.epoch(epoch)
    degree = torch.from_numpy(source.adjacency.degree)
    again = judge(training.logits(), graph.y, degree, graph.test_mask, graph.val_mask)
    # Rounding differs from machine to machine, and a hundred steps make something of it.
    assert again.accuracy == pytest.approx(kept(f"{method}-4")["accuracy"], abs=1.5)
    assert again.bias == pytest.approx(kept(f"{method}-4")["bias"], rel=0.3)
