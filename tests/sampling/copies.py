"""Many independent samples at once: one batch drawn from many copies of a small graph."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


def small_graph(nodes: int = 24, seed: int = 3) -> Data:
    """A weighted graph with skewed degrees."""
    random = np.random.default_rng(seed)
    pull = random.random(nodes) ** 2
    upper = np.triu(random.random((nodes, nodes)) < np.outer(pull, pull) + 0.12, 1)
    weights = random.uniform(0.5, 2, (nodes, nodes)) * upper
    dense = weights + weights.T
    edge_index = torch.from_numpy(np.stack(np.nonzero(dense)))
    return Data(
        x=torch.from_numpy(random.random((nodes, 3))),
        edge_index=edge_index,
        edge_weight=torch.from_numpy(dense[tuple(edge_index.numpy())]),
        num_nodes=nodes,
    )


def copied(graph: Data, count: int) -> Data:
    """The disjoint union of ``count`` copies of a graph, node i of copy c being c n + i."""
    n = int(graph.num_nodes)
    shift = torch.arange(count).repeat_interleave(graph.edge_index.shape[1]) * n
    return Data(
        x=graph.x.repeat(count, 1),
        edge_index=graph.edge_index.repeat(1, count) + shift,
        edge_weight=graph.edge_weight.repeat(count),
        num_nodes=n * count,
    )


def z_values(samples: list[Tensor], exact: Tensor) -> Tensor:
    """How many standard errors the mean of the samples is from what it should be."""
    every = torch.stack(samples)
    error = every.std(0) / len(samples) ** 0.5
    return (every.mean(0) - exact) / error.clamp_min(1e-12)
