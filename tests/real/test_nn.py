"""Somebody else's three-layer GCN on Amazon-Photo, with and without our two lines."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def figures(
    name: str, data_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[float, float]:
    """Accuracy and bias that an example prints, two seeds."""
    monkeypatch.setenv("RAWLSGCN_DATA", str(data_root))
    monkeypatch.setattr(sys, "argv", [name, "amazon-photo", "2", "150"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    found = re.search(r"accuracy ([\d.]+), bias ([\d.]+)", capsys.readouterr().out)
    assert found is not None
    return float(found[1]), float(found[2])


@pytest.mark.slow
def test_two_lines_halve_the_bias(
    data_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """tests/docs/test_examples.py tests that the two scripts differ by two lines."""
    plain_accuracy, plain_bias = figures("plain", data_root, monkeypatch, capsys)
    accuracy, bias = figures("two_lines", data_root, monkeypatch, capsys)
    assert bias < plain_bias / 2
    assert accuracy > plain_accuracy - 3
