"""What the program does not import, and that it can still be imported and used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

COMMAND = """
import sys
from rawlsgcn.cli import app
from rawlsgcn.cli.startup import postpone_unused_imports
postpone_unused_imports()
app("auto --dataset synthetic --time-limit 1".split(), standalone_mode=False)
import torch
print([name for name in sys.modules if name.startswith(("torch._dynamo.", "sympy"))])
"""
#: As torch_geometric asks for it: at its import, and going on without it.
TRANSFORMERS = "raise SystemExit('transformers was imported')"


def last_line(code: str, folder: Path) -> str:
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_a_command_imports_neither_the_compiler_nor_transformers(tmp_path: Path) -> None:
    (tmp_path / "transformers.py").write_text(TRANSFORMERS, encoding="utf-8")
    assert last_line(COMMAND, tmp_path) == "[]"


def test_both_can_be_imported_later(tmp_path: Path) -> None:
    (tmp_path / "transformers.py").write_text("here = 'transformers'", encoding="utf-8")
    code = (
        "from rawlsgcn.cli.startup import postpone_unused_imports as postpone; postpone()\n"
        "import torch_geometric, torch, transformers\n"
        "doubled = torch.compile(lambda x: 2 * x, backend='eager')\n"
        "print(transformers.here, doubled(torch.ones(1)).item())"
    )
    assert last_line(code, tmp_path) == "transformers 2.0"
