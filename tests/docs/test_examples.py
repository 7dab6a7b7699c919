"""Every example runs to its end on the synthetic graph, as the README says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(
    example: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    runpy.run_path(str(example), run_name="__main__")
    said = capfd.readouterr().out
    assert "accuracy" in said
    assert "nan" not in said
