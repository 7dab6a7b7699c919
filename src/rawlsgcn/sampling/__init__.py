"""Neighbors sampled from a large graph, with weights that keep every expectation unbiased.

``NeighborSampler`` and ``SampledWeights`` are for torch_geometric's ``NodeLoader``.
"""

from __future__ import annotations

from .adjacency import Adjacency
from .neighbor_drawing import Neighborhoods, parse_num_neighbors
from .sampled_weights import Factors, SampledWeights
from .sampler import NeighborSampler

__all__ = [
    "Adjacency",
    "Factors",
    "NeighborSampler",
    "Neighborhoods",
    "SampledWeights",
    "parse_num_neighbors",
]
