"""Which modules an import loads, and what is said where an optional package is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rawlsgcn import RawlsError
from rawlsgcn._core.errors import needs_extra

#: Blocks packages as if they were not installed.
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""
SERVICE = """
import rawlsgcn as rg
import rawlsgcn.nn, rawlsgcn.transforms, rawlsgcn.sampling
graph = rg.synthetic(300, seed=0)
result = rg.fit(graph, "rawlsgcn-graph", epochs=2, seeds=1)
audit = result.audit(resamples=100)
assert rg.balance(graph.edge_index, num_nodes=graph.num_nodes).converged
both = rg.compare(graph, ["gcn", "rawlsgcn-graph"], epochs=2, seeds=1)
best = rg.auto(graph, time_limit=5)
print(result, audit, both, best, result.to_frame(), audit.to_frame())
assert result._repr_html_() is both._repr_html_() is audit._repr_html_() is None
for page in (lambda: rg.report, lambda: audit.to_html("page.html"), both.accuracy_bias_plot):
    try:
        page()
    except rg.RawlsError as error:
        assert "needs an optional package: pip install 'rawlsgcn[report]'" in str(error), error
    else:
        raise AssertionError
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def loaded_by(code: str, folder: Path, first: str = "import sys") -> set[str]:
    """The packages that this code loads in a process of its own, after some ``first`` lines."""
    lines = f"import json, sys\n{first}\nbefore = set(sys.modules)\n{code}\n"
    done = run(f"{lines}print(json.dumps(sorted(set(sys.modules) - before)))", folder)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_but_the_package(tmp_path: Path) -> None:
    added = loaded_by("import rawlsgcn", tmp_path)
    own = {name for name in added if name.partition(".")[0] == "rawlsgcn"}
    assert own == {"rawlsgcn", "rawlsgcn._core"}
    assert {name.partition(".")[0] for name in added - own} <= sys.stdlib_module_names


@pytest.mark.slow
def test_importing_the_layers_loads_nothing_beside_torch_geometric(tmp_path: Path) -> None:
    added = loaded_by("import rawlsgcn.nn", tmp_path, first="import torch_geometric.nn")
    assert {name.partition(".")[0] for name in added} == {"rawlsgcn"}


@pytest.mark.slow
def test_a_service_needs_no_package_of_the_command_line(tmp_path: Path) -> None:
    blocked = BLOCK.format(names=("typer", "rich", "matplotlib", "optuna", "pyarrow", "faiss"))
    done = run(blocked + SERVICE, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["typer", "matplotlib"])
def test_the_command_says_in_one_sentence_which_extra_it_needs(name: str, tmp_path: Path) -> None:
    code = f"import sys\nsys.modules[{name!r}] = None\nfrom rawlsgcn.__main__ import main\nmain()"
    done = run(code, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    said = "rawlsgcn: the command line needs an optional package: pip install 'rawlsgcn[cli]'\n"
    assert done.stderr == said


def test_the_failed_import_of_a_package_of_no_extra_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such"), needs_extra("this"):
        import no_such  # noqa: F401
    with pytest.raises(RawlsError, match=r"this needs .*'rawlsgcn\[report\]'"), needs_extra("this"):
        raise ModuleNotFoundError("No module named 'jinja2.ext'", name="jinja2.ext")
