"""Every example runs to its end on the synthetic graph, as the README says."""

from __future__ import annotations

import difflib
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import stand_in_lightning

EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENTS = {"lightning_module": ["synthetic", "10"]}


def scripts() -> list[Any]:
    slow = dict.fromkeys(("torchrun", "custom_model"), pytest.mark.slow)
    return [
        pytest.param(path, id=path.stem, marks=slow.get(path.stem, ()))
        for path in sorted(EXAMPLES.glob("*.py"))
    ]


@pytest.mark.parametrize("example", scripts())
def test_the_example_runs(
    example: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    takes_epochs = "[seeds] [epochs]" in example.read_text(encoding="utf-8")
    few = ["synthetic", "1", "30"] if takes_epochs else ARGUMENTS.get(example.stem, [])
    monkeypatch.setattr(sys, "argv", [str(example), *few])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stand_in_lightning.use(monkeypatch)
    runpy.run_path(str(example), run_name="__main__")
    said = capfd.readouterr().out
    assert "accuracy" in said
    assert "nan" not in said


def test_two_lines_are_two_lines() -> None:
    plain, other = (
        (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2].splitlines()
        for name in ("plain", "two_lines")
    )
    changes = difflib.ndiff(plain, other)
    assert [line[:2] for line in changes if line[0] in "+-"] == ["+ ", "+ "]
