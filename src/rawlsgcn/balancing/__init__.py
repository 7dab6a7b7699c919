"""The doubly stochastic form of a graph, and the other normalisations of its matrix.

``balance`` finds the scaling; ``propagation_matrix`` is what a graph convolution multiplies by.
"""

from .normalizations import NORMALIZATIONS, normalize, propagation_matrix, renormalized_laplacian
from .scaling import Scaling, StopReason
from .solver import balance

__all__ = [
    "NORMALIZATIONS",
    "Scaling",
    "StopReason",
    "balance",
    "normalize",
    "propagation_matrix",
    "renormalized_laplacian",
]
