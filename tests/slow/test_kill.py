"""The short form of tools/kill.py: commands are killed, and nothing is lost, mixed or left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "kill.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TOOL.exists(), reason="not run from a clone"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc"),
]


def test_kills_lose_nothing(tmp_path: Path) -> None:
    named = ("train, existing folder", "balance", "sharded training")
    asked = [word for name in named for word in ("--command", name)]
    ran = subprocess.run(
        [sys.executable, str(TOOL), "--kills", "6", "--seed", "3", *asked],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 kills, 0 failures" in ran.stdout
