"""Degree-fair graph neural networks: RawlsGCN-Graph and RawlsGCN-Grad for PyTorch Geometric.

Everything here is imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import __version__ as __version__
from ._core import homes, lazy_names

if TYPE_CHECKING:
    from . import methods as methods
    from . import metrics as metrics
    from . import nn as nn
    from . import sampling as sampling
    from . import transforms as transforms
    from ._core.errors import RawlsError as RawlsError
    from .balancing import Scaling as Scaling
    from .balancing import balance as balance
    from .experiments import Audit as Audit
    from .experiments import AutoResult as AutoResult
    from .experiments import Comparison as Comparison
    from .experiments import Result as Result
    from .experiments import TrainedModel as TrainedModel
    from .experiments import Tuning as Tuning
    from .experiments import audit as audit
    from .experiments import auto as auto
    from .experiments import check_method as check_method
    from .experiments import compare as compare
    from .experiments import fit as fit
    from .experiments import load_model as load_model
    from .experiments import tune as tune
    from .graphs import load as load
    from .graphs import read as read
    from .graphs import synthetic as synthetic
    from .graphs.catalog import datasets as datasets
    from .methods import Method as Method
    from .reporting import report as report

_HOMES = homes(
    {
        "_core.errors": "RawlsError",
        "balancing": "Scaling balance",
        "experiments": "Audit AutoResult Comparison Result TrainedModel Tuning audit auto "
        "check_method compare fit load_model tune",
        "graphs": "load read synthetic",
        "graphs.catalog": "datasets",
        "methods": "Method methods",
        "metrics": "metrics",
        "nn": "nn",
        "reporting": "report",
        "sampling": "sampling",
        "transforms": "transforms",
    }
)
__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept every misspelt name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
