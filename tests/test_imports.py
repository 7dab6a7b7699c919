"""The order of the rooms is held by import-linter, and no module imports itself through others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Results, comparisons and audits display themselves: the exception that pyproject.toml names.
DISPLAY = ("rawlsgcn.experiments.", "rawlsgcn.reporting.")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package's source, which a test may change."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(folder / 'src')!r}); "
        "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_order_of_the_rooms_holds(copy: Path) -> None:
    done = linted(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "from rawlsgcn.training import reference\n",
        "def later():\n    from ..training import reference\n    return reference\n",
        "import typing\nif typing.TYPE_CHECKING:\n    from ..training import reference\n",
    ],
    ids=["at the top", "in a function", "for types only"],
)
def test_an_import_against_the_order_fails(copy: Path, line: str) -> None:
    module = copy / "src" / "rawlsgcn" / "balancing" / "solver.py"
    module.write_text(module.read_text(encoding="utf-8") + "\n" + line, encoding="utf-8")
    done = linted(copy)
    assert done.returncode == 1
    assert "rawlsgcn.balancing.solver -> rawlsgcn.training.reference" in done.stdout


def test_no_cycle_counting_all_imports() -> None:
    graph = grimp.build_graph("rawlsgcn")
    edges = {
        module: {
            other
            for other in graph.find_modules_directly_imported_by(module)
            if not (module.startswith(DISPLAY[0]) and other.startswith(DISPLAY[1]))
        }
        for module in graph.modules
        if module != "rawlsgcn"
    }
    list(TopologicalSorter(edges).static_order())  # raises CycleError, which names the cycle
