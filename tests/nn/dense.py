"""The layers' matrices and their doubly stochastic forms, dense and in float64."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data


def adjacency(graph: Data) -> Tensor:
    """A with A[i, j] the weight of the edge j → i; repeated edges add up."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    weight = graph.get("edge_weight")
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    source, target = graph.edge_index
    values = ones if weight is None else weight.double()
    return matrix.index_put((target, source), values, accumulate=True)


def with_loops(matrix: Tensor, weight: float = 1.0) -> Tensor:
    """A self-loop for each node that has none."""
    own = matrix.diagonal()
    return matrix - own.diag() + torch.where(own == 0, weight, own).diag()


def balanced(matrix: Tensor) -> Tensor:
    """diag(x) M diag(x) with row sums 1, for symmetric M with a positive diagonal."""
    x = matrix.sum(1).rsqrt()
    for _ in range(5_000):
        sums = x * (matrix @ x)
        x = x / sums.sqrt()
        if (sums - 1).abs().max() < 1e-15:
            break
    return x[:, None] * matrix * x[None]


def pagerank(matrix: Tensor, K: int, alpha: float) -> Tensor:
    """Π(M) of APPNP, written as its recursion."""
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    answer = identity
    for _ in range(K):
        answer = (1 - alpha) * matrix @ answer + alpha * identity
    return answer
