"""What several files say about the package: its version, and the lowest versions that it needs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import rawlsgcn

ROOT = Path(__file__).parents[2]


def section(text: str, start: str, end: str) -> str:
    """The part of pyproject.toml between two lines (Python 3.10 has no tomllib)."""
    return text[text.index(start) : text.index(end)]


def declared() -> dict[str, Version]:
    """The lowest version of every dependency, and of those of the users' extras."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = section(text, "dependencies = [", "dev = [")
    found = map(Requirement, re.findall(r'"([^"]+)"', lines))
    return {
        canonicalize_name(each.name): Version(next(iter(each.specifier)).version)
        for each in found
        if each.name != "rawlsgcn"
    }


def test_the_lowest_versions_are_those_that_are_tested() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    tested = {canonicalize_name(each.name): each.specifier for each in pinned}
    assert tested.keys() == declared().keys()
    for name, lowest in declared().items():
        (pin,) = tested[name]
        assert pin.operator == "=="
        assert Version(pin.version) == lowest, name


def test_what_is_installed_is_not_older() -> None:
    for name, lowest in declared().items():
        try:
            assert Version(version(name)) >= lowest, name
        except PackageNotFoundError:
            assert name in ("faiss-cpu", "psycopg2-binary", "pyarrow", "optuna")


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {rawlsgcn.__version__}\n" in text
    assert text.count("family-names:") == 5
