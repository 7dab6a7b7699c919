"""Â and its four normalizations against their dense definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from balancing.reference import edges, graphs, sinkhorn_knopp
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import NORMALIZATIONS, normalize, propagation_matrix, renormalized_laplacian


def definition(adjacency, kind):
    looped = adjacency + np.eye(len(adjacency))
    factor = looped.sum(1) ** -0.5
    hat = factor[:, None] * looped * factor
    degree = hat.sum(1)
    return {
        "renormalized": lambda: hat,
        "row": lambda: hat / degree[:, None],
        "column": lambda: hat / degree,
        "symmetric": lambda: hat / np.sqrt(np.outer(degree, degree)),
        "doubly-stochastic": lambda: sinkhorn_knopp(hat),
    }[kind]()


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from(NORMALIZATIONS))
def test_each_kind_is_its_definition(graph, kind):
    adjacency, weighted = graph
    n = len(adjacency)
    index, weight = (torch.from_numpy(part) for part in edges(adjacency))
    given_weight = weight if weighted else None
    expected = definition(adjacency, kind)
    got = propagation_matrix(index, given_weight, n, kind, dtype=torch.float64)
    assert got.layout == torch.sparse_csr
    assert got.col_indices().dtype == torch.int32
    # The textbook's own answer is that inexact where weights span many magnitudes.
    close = 2e-7 if kind == "doubly-stochastic" else 1e-10
    np.testing.assert_allclose(got.to_dense(), expected, atol=close)
    single = propagation_matrix(index, given_weight, n, kind)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.values(), got.values().float(), rtol=1e-6, atol=1e-7)
    hat = renormalized_laplacian(index, given_weight, n)
    if kind != "renormalized":
        np.testing.assert_allclose(normalize(hat, kind).to_dense(), expected, atol=2e-7)
    if kind not in ("row", "column"):
        dense = single.to_dense()
        assert torch.equal(dense, dense.T)


def test_row_and_column_are_transposes_of_each_other():
    index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    row, column = (
        propagation_matrix(index, None, 4, kind).to_dense() for kind in ("row", "column")
    )
    torch.testing.assert_close(row.T, column)
    torch.testing.assert_close(row.sum(1), torch.ones(4))


def test_stored_loops_are_dropped_and_isolated_nodes_keep_one_loop():
    index = torch.tensor([[0, 0, 1], [0, 1, 0]])
    for kind in NORMALIZATIONS:
        dense = propagation_matrix(index, torch.tensor([9.0, 1, 1]), 3, kind).to_dense()
        torch.testing.assert_close(dense[:2, :2], torch.full((2, 2), 0.5))
        torch.testing.assert_close(dense[2], torch.tensor([0.0, 0.0, 1.0]))


def test_an_unknown_kind_is_answered_with_the_nearest():
    with pytest.raises(RawlsError, match="did you mean symmetric"):
        propagation_matrix(torch.tensor([[0, 1], [1, 0]]), normalization="symetric")
    with pytest.raises(RawlsError, match="row"):
        normalize(torch.eye(2).to_sparse_csr(), "rows")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_products_equal_the_cpus():
    index = torch.randint(0, 200, (2, 3000))
    index = torch.cat([index, index.flip(0)], 1).unique(dim=1)
    features = torch.randn(200, 16)
    for kind in NORMALIZATIONS:
        here = propagation_matrix(index, None, 200, kind)
        moved = propagation_matrix(index, None, 200, kind, device="cuda")
        there = propagation_matrix(index.cuda(), None, 200, kind)
        for matrix in (moved, there):
            torch.testing.assert_close((matrix @ features.cuda()).cpu(), here @ features)
