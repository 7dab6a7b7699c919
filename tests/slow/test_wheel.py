"""The wheel and the sdist, installed into environments that have only what they ask for.

The environments are made of links to the packages of this one, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

pytest.importorskip("build", reason="the package build is not installed")
pytest.importorskip("hatchling", reason="hatchling is not installed")
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
REASON = "from rawlsgcn._core.kernels import missing_reason; print(missing_reason())"
SERVICE = """
import rawlsgcn as rg
from rawlsgcn.metrics import DegreeBias
graph = rg.synthetic(300)
result = rg.fit(graph, "rawlsgcn-graph", epochs=2, seeds=1)
print(result, result.audit(), rg.balance(graph.edge_index, num_nodes=graph.num_nodes))
print(rg.auto(graph, time_limit=1))
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the sdist, from which the wheel was built."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": ""})
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


class Environment:
    """A virtual environment without a compiler in its PATH, unless asked for."""

    def __init__(self, folder: Path, wheel: Path, extras: Iterable[str] = ()) -> None:
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
            metadata = message_from_bytes(archive.read(name))
        needed = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
        self.link([*_wanted(needed, extras), Requirement("hatchling")])

    def link(self, needed: list[Requirement]) -> None:
        """Link the packages that are needed, and what they need, from this environment."""
        installed = {canonicalize_name(each.name): each for each in distributions()}
        linked: set[tuple[str, frozenset[str]]] = set()
        while needed:
            requirement = needed.pop()
            name = canonicalize_name(requirement.name)
            if name == "rawlsgcn" or (name, frozenset(requirement.extras)) in linked:
                continue
            linked.add((name, frozenset(requirement.extras)))
            for part in _top_level(installed[name]):
                if not (self.packages / part.name).exists():
                    (self.packages / part.name).symlink_to(part)
            own = [Requirement(text) for text in installed[name].requires or ()]
            needed += _wanted(own, requirement.extras)

    def install(self, package: Path, compiler: bool = False) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        command += ["--no-deps", "--no-index", "--no-cache-dir", "--no-build-isolation"]
        done = self.run(*command, str(package), compiler=compiler)
        assert done.returncode == 0, done.stderr

    def run(self, *command: str, compiler: bool = False) -> subprocess.CompletedProcess[str]:
        path = os.environ["PATH"] if compiler else str(self.python.parent)
        names = {"PYTHONPATH", "CC", "RAWLSGCN_PURE"}
        environ = {name: value for name, value in os.environ.items() if name not in names}
        assert compiler or shutil.which("cc", path=path) is None
        return subprocess.run(
            command,
            cwd=self.python.parents[1],
            env=environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def said(self, code: str) -> str:
        done = self.run(str(self.python), "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def require_demo(self) -> None:
        done = self.run(str(self.python.with_name("rawlsgcn")), "demo", "--out", "out")
        assert done.returncode == 0, done.stderr
        assert (self.python.parents[1] / "out" / "report.html").stat().st_size > 10_000


def _wanted(requirements: Iterable[Requirement], extras: Iterable[str]) -> list[Requirement]:
    """Those that hold here, with these extras; the package's own extras are followed."""
    wanted, chosen = [], set(extras)
    requirements = list(requirements)
    while True:
        wanted = [
            each
            for each in requirements
            if each.marker is None
            or any(each.marker.evaluate({"extra": extra}) for extra in ("", *chosen))
        ]
        own = {extra for each in wanted if each.name == "rawlsgcn" for extra in each.extras}
        if own <= chosen:
            return wanted
        chosen |= own


def _top_level(distribution: Distribution) -> set[Path]:
    """The files and folders of a distribution in site-packages."""
    names = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
    return {Path(str(distribution.locate_file(name))) for name in names}


def test_the_wheel_is_for_this_platform_and_the_sdist_has_no_library(
    dist: Path, wheel: Path
) -> None:
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert not wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sum(name.endswith(".so") for name in names) == 1
    assert not [name for name in names if name.startswith(("tests", "tools", "benchmarks"))]
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as packed:
        names = packed.getnames()
    assert not [name for name in names if name.endswith((".so", ".pyc", ".html"))]
    for name in ("hatch_build.py", "CITATION.cff", "CONTRIBUTING.md", "src/rawlsgcn/py.typed"):
        assert f"{sdist.name.removesuffix('.tar.gz')}/{name}" in names


def test_a_plain_install_trains_balances_and_judges(tmp_path: Path, wheel: Path) -> None:
    plain = Environment(tmp_path, wheel)
    plain.install(wheel)
    for name in ("typer", "rich", "matplotlib"):
        assert not (plain.packages / name).exists()
    assert plain.said(REASON) == "None"
    assert "RawlsGCN-Graph on synthetic" in plain.said(SERVICE)
    done = plain.run(str(plain.python.with_name("rawlsgcn")), "demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pip install 'rawlsgcn[cli]'\n")
    # Kernels for another processor: the fifth field of the header names it.
    (library,) = plain.packages.glob("rawlsgcn/_core/*.so")
    content = bytearray(library.read_bytes())
    content[18] ^= 0xFF
    library.write_bytes(content)
    assert "cannot be loaded" in plain.said(REASON)
    assert "RawlsGCN-Graph on synthetic" in plain.said(SERVICE)


@pytest.mark.parametrize("form", ["wheel", "sdist with a compiler", "sdist without one"])
def test_the_demo_runs_with_the_kernels_where_there_are_any(
    tmp_path: Path, dist: Path, wheel: Path, form: str
) -> None:
    compiler = form == "sdist with a compiler"
    if compiler and shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    environment = Environment(tmp_path, wheel, ["cli"])
    package = wheel if form == "wheel" else next(dist.glob("*.tar.gz"))
    environment.install(package, compiler=compiler)
    doctor = environment.run(str(environment.python.with_name("rawlsgcn")), "doctor").stdout
    if form == "sdist without one":
        reason = environment.said(REASON)
        assert reason.startswith("they were not compiled: ")
        assert "'cc'" in reason
        assert "compiled, in use" not in doctor
    else:
        assert "compiled, in use" in doctor
    environment.require_demo()
