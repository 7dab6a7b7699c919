"""The examples run as they say, on the embedded graph."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return done.stdout


def code(name: str) -> list[str]:
    """A script's lines after its docstring."""
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2].splitlines()


def test_two_lines_are_two_lines() -> None:
    changes = difflib.ndiff(code("plain"), code("two_lines"))
    assert [line[:2] for line in changes if line[0] in "+-"] == ["+ ", "+ "]


def test_two_lines_on_the_embedded_graph() -> None:
    found = re.fullmatch(
        r"synthetic, 1 seed\(s\): accuracy ([\d.]+), bias ([\d.]+)\n",
        run("two_lines", "synthetic", "1", "40"),
    )
    assert found is not None
    assert float(found[1]) > 60  # of six classes
    assert 0 < float(found[2]) < 0.1


def test_a_custom_model_on_the_embedded_graph() -> None:
    last = run("custom_model").splitlines()[-1]
    found = re.fullmatch(r"epoch 30: accuracy ([\d.]+), bias [\d.]+", last)
    assert found is not None
    assert float(found[1]) > 80
