"""The advice on the paper's graphs, and its estimates beside the committed measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rawlsgcn.advice import Case, advise
from rawlsgcn.evaluation.costs import Costs
from rawlsgcn.evaluation.evidence import MEASURED
from rawlsgcn.graphs import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("measured", MEASURED, ids=lambda each: each.name)
def test_the_evidence_describes_the_graphs(measured, data_root: Path) -> None:
    graph = load(measured.name, root=data_root)
    advice = advise(graph)
    assert advice.portrait.weight_ratio == pytest.approx(measured.weight_ratio, abs=0.0051)
    assert advice.portrait.adjusted_homophily == pytest.approx(
        measured.adjusted_homophily, abs=0.0051
    )
    assert advice.case is Case.of(measured.weight_ratio, measured.adjusted_homophily)
    peaks = [
        each["peak_memory_mb"]
        for each in json.loads((ROOT / "results/defaults" / f"{measured.name}.json").read_text())
    ]
    assert 0.7 < Costs.of(graph).memory_mb / max(peaks) < 1.5


def test_seconds_are_within_a_factor_of_two_of_the_benchmarks(data_root: Path) -> None:
    parts = json.loads((ROOT / "benchmarks" / "results-cpu.json").read_text())
    timed = {
        figure["name"].split(":")[0]: figure["ours"]["median"]
        for part in parts
        for figure in part["figures"]
        if figure["group"] == "training" and ": 5 runs x 100 epochs" in figure["name"]
    }
    assert len(timed) >= 4
    for name, seconds in timed.items():
        ratio = Costs.of(load(name, root=data_root)).seconds / seconds
        assert 0.5 < ratio < 2, (name, ratio)
