"""The two-line example is the plain one with two lines more; tests/test_examples.py runs both."""

from __future__ import annotations

import difflib
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def code(name: str) -> list[str]:
    """A script's lines after its docstring."""
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""', 2)[2].splitlines()


def test_two_lines_are_two_lines() -> None:
    changes = difflib.ndiff(code("plain"), code("two_lines"))
    assert [line[:2] for line in changes if line[0] in "+-"] == ["+ ", "+ "]
