"""The Python of docs/auto.md runs, and its tables name what there is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from small_pool import small_pool

from rawlsgcn.experiments.model_search.pool import POOL
from rawlsgcn.methods.settings import Settings
from rawlsgcn.methods.smoothed_mlp_inputs import SmoothedMLPSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "auto.md"


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
            "no: `--transferable`" in text.split(f"| {candidate.name} |")[1].split("\n")[0]
        ) is not candidate.transferable
    own = {each.name for each in fields(SmoothedMLPSettings)}
    for name in own - {each.name for each in fields(Settings)}:
        assert f"`{name}`" in text
