"""What editors and type checkers see: every name that a package imports on first use."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import rawlsgcn

LAZY = [
    name
    for name in [
        "rawlsgcn",
        *(m.name for m in pkgutil.walk_packages(rawlsgcn.__path__, "rawlsgcn.")),
    ]
    if "_kernels-" not in name and "_HOMES" in vars(importlib.import_module(name))
]


def shown_to_checkers(package: str) -> dict[str, tuple[str, str]]:
    """The names under ``if TYPE_CHECKING``, each with the module and the name it comes from."""
    source = Path(str(importlib.import_module(package).__file__)).read_text(encoding="utf-8")
    found = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                home = importlib.util.resolve_name("." * line.level + (line.module or ""), package)
                for each in line.names:
                    # Only 'name as name' is public for a package with types (PEP 484).
                    assert each.asname == each.name, f"write {each.name} as {each.name}"
                    found[each.name] = (home, each.name)
    return found


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(str(rawlsgcn.__file__)).parent / "py.typed").is_file()


@pytest.mark.parametrize("package", LAZY)
def test_editors_see_every_public_name_where_it_is(package: str) -> None:
    module = importlib.import_module(package)
    shown = shown_to_checkers(package)
    assert sorted(shown) == sorted(module._HOMES)  # the others of __all__ are plain imports
    assert set(shown) <= set(module.__all__) <= set(dir(module))
    for name, (home, original) in shown.items():
        place = importlib.import_module(home)
        value = getattr(place, original, None) or importlib.import_module(f"{home}.{original}")
        assert getattr(module, name) is value
        assert value.__doc__, f"{name} has no text for an editor to show"


def test_the_root_is_one_of_them() -> None:
    assert "rawlsgcn" in LAZY
    assert {"fit", "auto", "audit", "Result", "Scaling", "nn"} <= set(shown_to_checkers("rawlsgcn"))


def test_a_type_checker_reports_a_misspelt_name_of_the_root() -> None:
    """Where it sees a module's ``__getattr__``, it accepts every name."""
    source = ast.parse(Path(str(rawlsgcn.__file__)).read_text(encoding="utf-8"))
    seen = [block for block in source.body if not isinstance(block, ast.If)]
    assert not any("__getattr__" in ast.unparse(block) for block in seen)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = rawlsgcn.fitt
