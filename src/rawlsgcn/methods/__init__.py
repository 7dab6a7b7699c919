"""One file a method. A file that defines a :class:`Method` with a ``name`` is found by it."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from inspect import isabstract
from typing import Any

from ..errors import unknown_name
from .base import Convolutional, Learner, Method
from .inputs import Inputs
from .settings import NORMALISATIONS, Settings, with_changes

__all__ = [
    "NORMALISATIONS",
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
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    found = {cls.name: cls() for cls in _descendants(Method) if not isabstract(cls)}
    return dict(sorted(found.items()))


def find(name: str) -> Method:
    """The method called ``name``; an unknown name is an error that offers the nearest."""
    methods = available()
    if name not in methods:
        raise unknown_name("method", name, methods)
    return methods[name]


def _descendants(cls: Any) -> list[type[Method]]:
    return [each for child in cls.__subclasses__() for each in (child, *_descendants(child))]
