"""Degree-fair graph neural networks: RawlsGCN-Graph and RawlsGCN-Grad for PyTorch Geometric.

Everything here is loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core.lazy import lazy_names
from ._core.version import __version__ as __version__

if TYPE_CHECKING:
    from . import metrics as metrics
    from . import nn as nn
    from . import sampling as sampling
    from . import transforms as transforms
    from ._core.errors import RawlsError as RawlsError
    from .balancing import balance as balance
    from .experiments.auditing import audit as audit
    from .experiments.fitting import compare as compare
    from .experiments.fitting import fit as fit
    from .experiments.saved_models import load_model as load_model
    from .experiments.tuning import tune as tune
    from .graphs import load as load
    from .graphs import read as read
    from .graphs import synthetic as synthetic
    from .reporting.page import report as report

_HOMES = {
    "RawlsError": "_core.errors",
    "audit": "experiments.auditing",
    "balance": "balancing",
    "compare": "experiments.fitting",
    "fit": "experiments.fitting",
    "load": "graphs",
    "load_model": "experiments.saved_models",
    "metrics": "metrics",
    "nn": "nn",
    "read": "graphs",
    "report": "reporting.page",
    "sampling": "sampling",
    "synthetic": "graphs",
    "transforms": "transforms",
    "tune": "experiments.tuning",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
