"""Parts without a table of methods: statistics, timings and figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from rawlsgcn.paper.plan import Plan
from rawlsgcn.paper.reproduction import reproduce


@pytest.mark.slow
def test_statistics_and_figures(tmp_path: Path) -> None:
    plan = Plan(
        parts=("datasets", "figures"), datasets=("synthetic",), seeds=(0,), changes={"epochs": 1}
    )
    results = reproduce(plan, tmp_path / "out", device="cpu")
    assert results["datasets"][0]["ours"]["nodes"] == 3000
    for number in (1, 2, 3):
        assert (tmp_path / "out" / "figures" / f"figure-{number}.png").is_file()
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 3


@pytest.mark.slow
def test_timings_are_of_single_runs(tmp_path: Path) -> None:
    """Each method is timed in a process of its own."""
    plan = Plan(
        parts=("efficiency",),
        datasets=("synthetic",),
        methods=("rawlsgcn-graph",),
        seeds=(0, 1),
        changes={"epochs": 2},
    )
    (cell,) = reproduce(plan, tmp_path / "out", device="cpu")["cells"]
    chosen = cell["chosen"]["validation"]
    assert len(chosen["times"]["train"]) == len(chosen["times"]["prepare"]) == 2
    assert min(chosen["times"]["train"]) > 0
    assert chosen["parameters"] > 0
