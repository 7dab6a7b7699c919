"""Degree-fair graph neural networks: RawlsGCN-Graph and RawlsGCN-Grad for PyTorch Geometric.

Everything here is loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .api import compare as compare
    from .api import fit as fit
    from .auditing import audit as audit
    from .balancing import balance as balance
    from .errors import RawlsError as RawlsError
    from .graphs import load as load
    from .graphs import read as read
    from .graphs import synthetic as synthetic
    from .models import load_model as load_model
    from .reporting.page import report as report
    from .tuning import tune as tune

_HOMES = {
    "RawlsError": "errors",
    "audit": "auditing",
    "balance": "balancing",
    "compare": "api",
    "fit": "api",
    "load": "graphs",
    "load_model": "models",
    "read": "graphs",
    "report": "reporting.page",
    "synthetic": "graphs",
    "tune": "tuning",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rawlsgcn' has no attribute '{name}'")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
