"""Errors, argument checks, atomic files, sparse matrices, threads and the compiled kernels.

Here are the version, and the function by which every room imports its names on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def homes(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, given the names of each module, separated by spaces."""
    return {name: module for module, names in modules.items() for name in names.split()}


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package that imports its names on first use.

    Args:
        package: The package's ``__name__``.
        homes: The module of each name, relative to the package. A name that equals its home
            (``"nn": "nn"``) is that module itself.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        try:
            module = import_module(f".{homes[name]}", package)
        except ModuleNotFoundError:
            from .errors import needs_extra

            with needs_extra(package):
                raise
        value = module if homes[name] == name else getattr(module, name)
        vars(import_module(package))[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *homes})

    return get, names
