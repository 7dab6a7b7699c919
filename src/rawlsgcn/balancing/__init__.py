"""The doubly stochastic form of a graph, and the other normalizations of its matrix.

``balance`` computes the scaling; ``propagation_matrix`` is what a graph convolution multiplies by.
"""

from .normalizations import (
    ABLATION_NORMALIZATIONS,
    NORMALIZATIONS,
    normalize,
    propagation_matrix,
    renormalized_laplacian,
)
from .scaling import Scaling, StopReason
from .solver import balance

__all__ = [
    "ABLATION_NORMALIZATIONS",
    "NORMALIZATIONS",
    "Scaling",
    "StopReason",
    "balance",
    "normalize",
    "propagation_matrix",
    "renormalized_laplacian",
]
