"""The methods, one file for each, and what a method of your own is made of.

``rawlsgcn.methods()`` lists their names. Classes are imported on first use, so that the names cost
nothing.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from .._core import homes, lazy_names
from .registry import MAIN_METHODS as MAIN_METHODS
from .registry import find_method as find_method
from .registry import method_names as method_names
from .registry import register as register

if TYPE_CHECKING:
    from ._ops.convolution import GraphConvolutionalNetwork as GraphConvolutionalNetwork
    from ._ops.fixed_matrix import FixedMatrix as FixedMatrix
    from ._ops.random_draws import Dropout as Dropout
    from .base import Learner as Learner
    from .base import Method as Method
    from .base import Stackable as Stackable
    from .base import accuracy_of as accuracy_of
    from .base import normalized_adjacency as normalized_adjacency
    from .gcn import Convolutional as Convolutional
    from .inputs import Inputs as Inputs
    from .settings import Settings as Settings
    from .settings import with_changes as with_changes

_HOMES = homes(
    {
        "_ops.convolution": "GraphConvolutionalNetwork",
        "_ops.fixed_matrix": "FixedMatrix",
        "_ops.random_draws": "Dropout",
        "base": "Learner Method Stackable accuracy_of normalized_adjacency",
        "gcn": "Convolutional",
        "inputs": "Inputs",
        "settings": "Settings with_changes",
    }
)
__all__ = ["MAIN_METHODS", "find_method", "method_names", "register", *_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)


class _CallablePackage(ModuleType):
    """A package that can be called: ``rawlsgcn.methods`` is this package and a function."""

    def __call__(self) -> tuple[str, ...]:
        """Return the names of all methods: see :func:`method_names`."""
        return method_names()


sys.modules[__name__].__class__ = _CallablePackage
