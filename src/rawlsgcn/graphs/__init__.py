"""Where graphs come from: the paper's datasets, the user's files, and the synthetic graph.

Loaded on first use, so that the torch-free :mod:`.catalogue` can be read on its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .block_model import synthetic as synthetic
    from .checks import check as check
    from .datasets import load as load
    from .readers import read as read
    from .splits import paper_split as paper_split
    from .summary import statistics as statistics

_HOMES = {
    "check": "checks",
    "load": "datasets",
    "paper_split": "splits",
    "read": "readers",
    "statistics": "summary",
    "synthetic": "block_model",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rawlsgcn.graphs' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
