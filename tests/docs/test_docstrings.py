"""Every public name is documented the same way, and the examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

import rawlsgcn

FACES = (
    "rawlsgcn",
    "rawlsgcn.graphs",
    "rawlsgcn.balancing",
    "rawlsgcn.nn",
    "rawlsgcn.transforms",
    "rawlsgcn.sampling",
    "rawlsgcn.methods",
    "rawlsgcn.training",
    "rawlsgcn.evaluation",
    "rawlsgcn.metrics",
    "rawlsgcn.experiments",
    "rawlsgcn.reporting",
    "rawlsgcn.reporting.figures",
    "rawlsgcn.reporting.audit_figures",
    "rawlsgcn.paper",
)
MODULES = [
    each.name
    for each in pkgutil.walk_packages(rawlsgcn.__path__, "rawlsgcn.")
    if "_kernels-" not in each.name  # the compiled library
]


def public() -> dict[str, Any]:
    """Every function and class of the rooms' public faces, and their public methods."""
    found: dict[str, Any] = {}
    for face in FACES:
        module = importlib.import_module(face)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, ModuleType) or not callable(value):
                continue
            found[f"{value.__module__}.{value.__qualname__}"] = value
            if inspect.isclass(value):
                for method, member in vars(value).items():
                    if not method.startswith("_") and inspect.isfunction(member):
                        found[f"{value.__module__}.{value.__qualname__}.{method}"] = member
    return {name: value for name, value in found.items() if name.startswith("rawlsgcn")}


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_say_what_they_take_and_return(name: str) -> None:
    value = PUBLIC[name]
    words = inspect.getdoc(value) or ""
    assert words, "has no docstring"
    if inspect.isclass(value) and issubclass(value, Exception | Enum | dict):
        return
    parameters = [
        each
        for each in inspect.signature(value).parameters.values()
        if each.name not in ("self", "cls") and not each.name.startswith("_")
    ]
    if parameters:
        if inspect.isclass(value):  # what a class inherits is described where it comes from
            words = "\n".join(base.__doc__ or "" for base in value.__mro__)
        assert "Args:" in words or "Attributes:" in words
        for each in parameters:
            if each.kind is not each.VAR_KEYWORD:
                assert f"{each.name}:" in words or f"{each.name} (" in words, each.name


@pytest.mark.parametrize("name", [name for name in rawlsgcn.__all__ if name.islower()])
def test_root_functions_have_an_example(name: str) -> None:
    value = getattr(rawlsgcn, name)
    if not isinstance(value, ModuleType):
        assert ">>>" in (inspect.getdoc(value) or "")


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for each in found:
        runner.run(each)
    assert runner.failures == 0
