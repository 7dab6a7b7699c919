"""What methods are given: row-normalised features, degrees, nodes of each split."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn.methods import Inputs
from rawlsgcn.methods.inputs import row_normalised


@settings(max_examples=50, deadline=None)
@given(graph=graphs())
def test_rows_sum_to_one_or_zero_and_sparse_equals_dense(graph: Data) -> None:
    x = graph.x.to_dense()
    normal = row_normalised(x)
    sums = normal.sum(1)
    assert torch.allclose(sums, (x.sum(1) > 0).double())
    torch.testing.assert_close(row_normalised(x.to_sparse_csr()).to_dense(), normal)


def test_negative_features_are_left_as_they_are() -> None:
    x = torch.tensor([[1.0, -1.0], [2.0, 3.0]])
    assert torch.equal(row_normalised(x), x)


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_degree_counts_neighbours(graph: Data) -> None:
    inputs = Inputs.of(graph)
    for node in range(graph.num_nodes):
        neighbours = set(graph.edge_index[1, graph.edge_index[0] == node].tolist())
        assert inputs.degree[node] == len(neighbours - {node})
