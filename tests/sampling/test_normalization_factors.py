"""Two vectors give every entry of every normalization."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import NORMALIZATIONS, propagation_matrix
from rawlsgcn.sampling import Adjacency, Factors
from rawlsgcn.sampling.normalization_factors import doubly_stochastic_scale


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(NORMALIZATIONS), st.booleans())
def test_entries_equal_those_of_the_whole_matrix(graph: Data, form: str, weighted: bool) -> None:
    weight = None
    if weighted:
        ends = graph.edge_index.sum(0)
        weight = (1 + ends % 3).double()  # the same both ways
    nodes = int(graph.num_nodes)
    adjacency = Adjacency.of_symmetric(graph.edge_index, weight, nodes)
    factors = Factors.of(adjacency, form)
    dense = np.eye(nodes)
    dense[tuple(graph.edge_index.numpy())] = 1 if weight is None else weight.numpy()
    ours = factors.left[:, None] * dense * factors.right
    whole = propagation_matrix(graph.edge_index, weight, nodes, form, torch.float64)
    np.testing.assert_allclose(ours, whole.to_dense().numpy(), atol=1e-7)


def test_wrong_names_and_directed_graphs_are_told() -> None:
    adjacency = Adjacency.of(torch.tensor([[0, 1, 2], [1, 2, 0]]), None, 3)
    with pytest.raises(RawlsError, match="unknown normalization"):
        Factors.of(adjacency, "rows")
    with pytest.raises(RawlsError, match="not symmetric"):
        doubly_stochastic_scale(adjacency)
