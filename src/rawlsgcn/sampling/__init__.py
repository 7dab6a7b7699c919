"""Neighbours drawn from a large graph, with weights that keep every expectation right.

``NeighbourSampler`` and ``SampledWeights`` go into torch_geometric's ``NodeLoader``.
"""

from __future__ import annotations

from .adjacency import Adjacency
from .factors import Factors
from .neighbourhoods import Neighbourhoods, checked_fan_out
from .sampler import NeighbourSampler
from .weights import SampledWeights

__all__ = [
    "Adjacency",
    "Factors",
    "NeighbourSampler",
    "Neighbourhoods",
    "SampledWeights",
    "checked_fan_out",
]
