"""The Python of docs/auto.md runs, and its tables name what there is and what was measured."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from small_pool import small_pool

from rawlsgcn.experiments.model_search.pool import POOL
from rawlsgcn.graphs.catalog import CATALOG
from rawlsgcn.methods.settings import Settings
from rawlsgcn.methods.smoothed_mlp_inputs import SmoothedMLPSettings

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "auto.md"


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with small_pool():
        exec(compile(block, str(PAGE), "exec"), {})
    assert "validation_loss" in capsys.readouterr().out
    assert (tmp_path / "model" / "config.json").is_file()


def test_every_member_and_setting_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for candidate in POOL:
        assert f"| {candidate.name} |" in text
        assert (
            text.split(f"| {candidate.name} |")[1].split("\n")[0].endswith("| yes |")
        ) is candidate.transferable
    own = {each.name for each in fields(SmoothedMLPSettings)}
    for name in own - {each.name for each in fields(Settings)}:
        assert f"`{name}`" in text


def test_the_figures_are_those_of_the_results() -> None:
    """Those of docs/auto.md and of the README."""
    text = PAGE.read_text(encoding="utf-8")
    results = json.loads((ROOT / "results/auto/auto.json").read_text(encoding="utf-8"))
    gains, ratios = [], []
    for graph, figures in results["graphs"].items():
        gcn = figures["auto_minus"]["gcn"]
        assert gcn["accuracy"]["splits"] == 10
        gains.append(gcn["low_degree_accuracy"]["mean"])
        ratios.append(gcn["bias_ratio_of_means"])
        cells = (f"{gcn['accuracy']['mean']:+.1f}", f"{gains[-1]:+.1f}", f"{ratios[-1]:.2f}")
        assert f"| {CATALOG[graph].title} | {' | '.join(cells)} |" in text
        (auto_runs,), (runs,) = (figures["models"][name]["runs"] for name in ("auto", "gcn"))
        assert f"tuned with {runs} runs (`auto` has {auto_runs})" in text
    assert len(gains) == 7
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"gain {sum(gains) / 7:.1f} points on average" in readme
    assert min(gains) > 0
    assert sum(ratio <= 0.5 for ratio in ratios) == 5
    assert "at most half on five of them" in readme
