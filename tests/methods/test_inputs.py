"""What methods are given: features, degrees, nodes of each split."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from strategies import graphs
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs


@pytest.mark.parametrize("sparse", [False, True])
def test_negative_features_are_left_as_they_are_unless_the_model_wants_them_divided(
    sparse: bool,
) -> None:
    x = torch.tensor([[1.0, -1.0], [2.0, 3.0], [-4.0, 1.0]])
    graph = Data(x=x.to_sparse_csr() if sparse else x, edge_index=torch.tensor([[0, 1], [1, 0]]))
    kept = Inputs.of(graph, num_classes=2).x
    assert torch.equal(kept.to_dense(), x)
    divided = Inputs.of(graph, num_classes=2, even_negative=True).x
    # A sum of zero or less would turn signs round or divide by nothing.
    expected = torch.tensor([[1.0, -1.0], [0.4, 0.6], [-4.0, 1.0]])
    torch.testing.assert_close(divided.to_dense(), expected)
    plain = Inputs.of(graph, num_classes=2, normalize_features=False, even_negative=True).x
    assert torch.equal(plain.to_dense(), x)


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_degree_counts_neighbors(graph: Data) -> None:
    inputs = Inputs.of(graph)
    for node in range(graph.num_nodes):
        neighbors = set(graph.edge_index[1, graph.edge_index[0] == node].tolist())
        assert inputs.degree[node] == len(neighbors - {node})


def test_sparse_and_dense_features_of_one_graph_are_the_same_inputs() -> None:
    dense, sparse = (synthetic(200, features=2000, sparse=form) for form in (False, True))
    assert (dense.x.layout, sparse.x.layout) == (torch.strided, torch.sparse_csr)
    one, two = Inputs.of(dense).x, Inputs.of(sparse).x
    assert one.layout == two.layout == torch.sparse_csr
    for name in ("crow_indices", "col_indices", "values"):
        assert torch.equal(getattr(one, name)(), getattr(two, name)())
    for method in ("gcn", "rawlsgcn-graph"):
        logits = [rg.fit(graph, method, seeds=1, epochs=3).logits[0] for graph in (dense, sparse)]
        assert torch.equal(*logits)
