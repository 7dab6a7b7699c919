"""Random small graphs for property tests: isolated nodes, several components, weights."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data


@st.composite
def graphs(draw: st.DrawFn, *, max_nodes: int = 14, weighted: bool | None = None) -> Data:
    """A symmetric graph without self-loops, with features, labels and a few training nodes."""
    nodes = draw(st.integers(2, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    upper = np.triu(rng.random((nodes, nodes)) < draw(st.sampled_from([0.05, 0.2, 0.6])), 1)
    upper[0, 1] = True
    if nodes > 2 and draw(st.booleans()):  # an isolated node
        upper[:, nodes - 1] = False
    weights = rng.uniform(0.2, 3, (nodes, nodes)) * upper
    dense = weights + weights.T
    rows, columns = np.nonzero(dense)
    features, classes = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    x = torch.from_numpy((rng.random((nodes, features)) < 0.5) * rng.random((nodes, features)))
    if draw(st.booleans()):
        x = x.to_sparse_csr()
    y = torch.from_numpy(rng.integers(0, classes, nodes))
    y[0], y[1] = 0, classes - 1
    train = torch.from_numpy(rng.random(nodes) < 0.4)
    train[0] = train[1] = True
    graph = Data(
        x=x.double(),
        y=y,
        edge_index=torch.from_numpy(np.stack([rows, columns])),
        train_mask=train,
        val_mask=~train,
        test_mask=~train,
        num_nodes=nodes,
    )
    if draw(st.booleans()) if weighted is None else weighted:
        graph.edge_weight = torch.from_numpy(dense[rows, columns])
    return graph


def dense_form(graph: Data, form: str) -> Tensor:
    """A normalization of Â by the textbook, dense and in float64."""
    n = graph.num_nodes
    matrix = torch.eye(n, dtype=torch.float64)
    weight = graph.get("edge_weight")
    ones = torch.ones(graph.edge_index.shape[1], dtype=torch.float64)
    matrix[graph.edge_index[0], graph.edge_index[1]] = ones if weight is None else weight.double()
    degree = matrix.sum(1)
    laplacian = matrix / (degree[:, None] * degree[None]).sqrt()
    if form == "row":
        return laplacian / laplacian.sum(1, keepdim=True)
    if form == "column":
        return laplacian / laplacian.sum(0, keepdim=True)
    if form == "symmetric":
        own = laplacian.sum(1)
        return laplacian / (own[:, None] * own[None]).sqrt()
    if form == "doubly-stochastic":
        rows, columns = torch.ones(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64)
        for _ in range(20_000):  # textbook Sinkhorn-Knopp
            rows = 1 / (laplacian @ columns)
            columns = 1 / (laplacian.t() @ rows)
            if ((rows * (laplacian @ columns)) - 1).abs().max() < 1e-14:
                break
        return rows[:, None] * laplacian * columns[None]
    return laplacian
