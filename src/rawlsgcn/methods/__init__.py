"""One file a method. A file that defines a :class:`Method` with a ``name`` is found by it."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from inspect import isabstract, isclass

from .._core.errors import unknown_name
from .base import Convolutional, Learner, Method
from .inputs import Inputs
from .settings import Settings, with_changes

__all__ = [
    "Convolutional",
    "Inputs",
    "Learner",
    "Method",
    "Settings",
    "available",
    "find",
    "with_changes",
]


def available() -> dict[str, Method]:
    """Every method in this folder, by name."""
    found = {}
    for entry in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        for value in vars(module).values():
            own = isclass(value) and value.__module__ == module.__name__
            if own and issubclass(value, Method) and not isabstract(value):
                found[value.name] = value()
    return dict(sorted(found.items()))


def find(name: str) -> Method:
    """The method called ``name``; an unknown name is an error that offers the nearest."""
    methods = available()
    if name not in methods:
        raise unknown_name("method", name, methods)
    return methods[name]
