"""Smoothing by personalized PageRank, against the dense formula in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn._core.kernels import without_kernels
from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods._ops.fixed_matrix import FixedMatrix
from rawlsgcn.methods._ops.smoothing import PageRankSmoothing


def smoothed(matrix: Tensor, features: Tensor, teleport: float, steps: int) -> Tensor:
    dense, z = matrix.to_dense(), features
    for _ in range(steps):
        z = (1 - teleport) * dense @ z + teleport * features
    return z


def graph(nodes: int = 120, kind: str = "doubly-stochastic") -> Tensor:
    data = synthetic(nodes, seed=3)
    return propagation_matrix(data.edge_index, None, nodes, kind, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["renormalized", "doubly-stochastic"])
@pytest.mark.parametrize("compiled", [True, False])
def test_all_rows_are_those_of_the_formula(kind: str, compiled: bool) -> None:
    matrix = graph(kind=kind)
    features = torch.randn(120, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = PageRankSmoothing(matrix, 0.1, 10)
    small = PageRankSmoothing(matrix, 0.1, 10, block_bytes=1)  # 16 columns at once
    expected = smoothed(matrix, features, 0.1, 10)
    if compiled:
        found = [whole(features), small(features)]
    else:
        with without_kernels():
            found = [whole(features), small(features)]
    for each in found:
        torch.testing.assert_close(each, expected, rtol=1e-12, atol=1e-12)


@given(
    seed=st.integers(0, 100),
    rows=st.integers(0, 60),
    features=st.integers(1, 60),
    steps=st.integers(0, 6),
    teleport=st.floats(0.01, 1),
    sparse=st.booleans(),
)
def test_some_rows_are_the_same_by_nodes_and_by_features(
    seed: int, rows: int, features: int, steps: int, teleport: float, sparse: bool
) -> None:
    """With fewer rows than features the unit vectors are smoothed, otherwise the features."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(120, features, dtype=torch.float64, generator=random)
    x[x < 0.7] = 0
    nodes = torch.randperm(120, generator=random)[:rows]
    matrix = graph()
    fixed = FixedMatrix.of(x.to_sparse_csr() if sparse else x)
    expected = smoothed(matrix, x, teleport, steps)[nodes]
    for block_bytes in (1, 1 << 28):
        smoothing = PageRankSmoothing(matrix, teleport, steps, block_bytes)
        found = smoothing.rows(fixed, nodes)
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_no_step_and_full_teleport_change_nothing() -> None:
    x = torch.rand(120, 20, dtype=torch.float64)
    torch.testing.assert_close(PageRankSmoothing(graph(), 0.1, 0)(x), x)
    torch.testing.assert_close(PageRankSmoothing(graph(), 1.0, 5)(x), x)


def test_a_constant_stays_constant_under_a_stochastic_matrix() -> None:
    ones = torch.ones(120, 16, dtype=torch.float64)
    torch.testing.assert_close(PageRankSmoothing(graph(), 0.1, 10)(ones), ones)


def test_the_features_are_not_changed() -> None:
    x = torch.rand(120, 20, dtype=torch.float64)
    before = x.clone()
    PageRankSmoothing(graph(), 0.1, 3)(x)
    assert torch.equal(x, before)
