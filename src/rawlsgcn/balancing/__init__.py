"""The doubly stochastic form of a graph, and the other normalisations of its matrix.

``balance`` finds the scaling; ``propagation_matrix`` is what a graph convolution multiplies by.
"""

from .normalizations import NORMALISATIONS, normalise, propagation_matrix, renormalised_laplacian
from .scaling import Outcome, Scaling
from .solver import balance

__all__ = [
    "NORMALISATIONS",
    "Outcome",
    "Scaling",
    "balance",
    "normalise",
    "propagation_matrix",
    "renormalised_laplacian",
]
