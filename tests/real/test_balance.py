"""Balancing on the paper's seven graphs: exact, symmetric, and in few products."""

from __future__ import annotations

import pytest
import torch

from benchmarks.balancing import renormalized, scipy_matrix
from benchmarks.rivals import published_sinkhorn_knopp
from rawlsgcn.balancing import balance
from rawlsgcn.graphs import load

GRAPHS = (
    "amazon-photo",
    "amazon-computers",
    "coauthor-cs",
    "coauthor-physics",
    "cora-ml",
    "citeseer",
    "chameleon",
)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_doubly_stochastic_form_is_exact_and_cheap(name, data_root):
    graph = load(name, root=data_root)
    n = graph.num_nodes
    scaling = balance(graph.edge_index, num_nodes=n)
    assert scaling.converged

    index, weight = scaling.matrix()
    for side in index:
        sums = torch.zeros(n, dtype=torch.float64).index_add_(0, side, weight)
        assert float((sums - 1).abs().max()) <= 1e-8

    balanced = torch.sparse_coo_tensor(index, weight, (n, n)).coalesce()
    mirrored = torch.sparse_coo_tensor(index.flip(0), weight, (n, n)).coalesce()
    assert torch.equal(balanced.indices(), mirrored.indices())
    assert torch.equal(balanced.values(), mirrored.values())

    loose = balance(graph.edge_index, num_nodes=n, tol=1e-6)
    assert loose.converged
    assert loose.iterations <= 20


def test_the_rival_is_the_published_procedure(data_root):
    """Both numbers are the published code's own, on this graph and to its tolerance."""
    a_hat = renormalized(scipy_matrix(load("amazon-photo", root=data_root)))
    iterations, balanced = published_sinkhorn_knopp(a_hat, 1e-2)
    assert iterations == 165
    assert abs(balanced - balanced.T).max() == pytest.approx(0.116, abs=5e-4)
