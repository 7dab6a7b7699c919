"""Theorem 1, in float64: both sums of influences are autograd's gradient, layer by layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from rawlsgcn.evaluation.influence import (
    column_influence,
    degrees_in_laplacian,
    node_influence,
    row_influence,
)


def random_graph(seed: int, nodes: int, density: float = 0.3) -> Tensor:
    """Dense A, symmetric, without loops; isolated nodes happen."""
    upper = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(seed)) < density
    upper = upper.triu(1).double()
    return upper + upper.T


def renormalized(adjacency: Tensor) -> Tensor:
    loops = adjacency + torch.eye(len(adjacency), dtype=torch.float64)
    scale = loops.sum(1).rsqrt()
    return scale[:, None] * loops * scale


def doubly_stochastic(adjacency: Tensor) -> Tensor:
    loops = adjacency + torch.eye(len(adjacency), dtype=torch.float64)
    x = loops.sum(1).rsqrt()
    for _ in range(5000):
        x = x / (x * (loops @ x)).sqrt()
    return x[:, None] * loops * x


def backward(
    matrix: Tensor, layers: int, seed: int, features: Tensor | None = None
) -> tuple[list[tuple[Tensor, Tensor]], list[Tensor]]:
    """A GCN of some layers: (H^(l-1), ∂J/∂E^(l)) and autograd's ∂J/∂W^(l) of each."""
    rng = torch.Generator().manual_seed(seed)
    nodes = len(matrix)
    widths = [4, 6, 5, 3, 2][: layers + 1]
    h = features
    if h is None:
        h = torch.randn(nodes, widths[0], generator=rng, dtype=torch.float64)
    y = torch.randint(0, widths[-1], (nodes,), generator=rng)
    inputs, outputs, weights = [], [], []
    for layer in range(layers):
        shape = (h.shape[1], widths[layer + 1])
        weight = torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()
        e = matrix @ h @ weight
        e.retain_grad()
        inputs.append(h)
        outputs.append(e)
        weights.append(weight)
        h = e.relu() if layer % 2 else e.tanh()
    torch.nn.functional.cross_entropy(outputs[-1], y).backward()
    gradients = [e.grad for e in outputs]
    return list(zip(inputs, gradients, strict=True)), [weight.grad for weight in weights]


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_both_sums_are_the_gradient_in_every_layer(
    seed: int, nodes: int, layers: int, sparse: bool
) -> None:
    matrix = renormalized(random_graph(seed, nodes))
    parts, gradients = backward(matrix, layers, seed)
    given_matrix = matrix.to_sparse_csr() if sparse else matrix
    for (inputs, gradient), expected in zip(parts, gradients, strict=True):
        for influence in (row_influence, column_influence):
            total = influence(given_matrix, inputs, gradient).total()
            torch.testing.assert_close(total, expected, rtol=0, atol=1e-10)


@given(st.integers(0, 10_000), st.integers(2, 15))
@settings(max_examples=30, deadline=None)
def test_the_matrices_are_the_papers_and_add_up(seed: int, nodes: int) -> None:
    matrix = renormalized(random_graph(seed, nodes))
    ((h, g), *_), (expected, *_) = backward(matrix, 2, seed)
    degree = matrix.sum(1)
    rows, columns = row_influence(matrix, h, g), column_influence(matrix, h, g)
    for influence in (rows, columns):
        torch.testing.assert_close(influence.degree, degree, rtol=1e-12, atol=0)
    everyone = torch.arange(nodes)
    row_matrices, column_matrices = rows.matrices(everyone), columns.matrices(everyone)
    for v in range(nodes):
        p = matrix[v] / degree[v]
        torch.testing.assert_close(row_matrices[v], torch.outer(h[v], p @ g).detach())
        torch.testing.assert_close(column_matrices[v], torch.outer(p @ h, g[v]).detach())
    torch.testing.assert_close((degree[:, None, None] * row_matrices).sum(0), expected)
    torch.testing.assert_close((degree[:, None, None] * column_matrices).sum(0), expected)
    chosen = torch.tensor([nodes - 1, 0])
    torch.testing.assert_close(rows.matrices(chosen), row_matrices[chosen])
    torch.testing.assert_close(rows.norms(), row_matrices.flatten(1).norm(dim=1))
    torch.testing.assert_close(columns.norms(), column_matrices.flatten(1).norm(dim=1))


@given(st.integers(0, 10_000), st.integers(2, 20))
@settings(max_examples=20, deadline=None)
def test_a_doubly_stochastic_matrix_weights_everybody_alike(seed: int, nodes: int) -> None:
    matrix = doubly_stochastic(random_graph(seed, nodes))
    parts, gradients = backward(matrix, 3, seed)
    influence = node_influence(matrix, parts)
    ones = torch.ones(nodes, dtype=torch.float64)
    torch.testing.assert_close(influence.row_degree, ones, rtol=0, atol=1e-6)
    torch.testing.assert_close(influence.column_degree, ones, rtol=0, atol=1e-6)
    for (inputs, gradient), expected in zip(parts, gradients, strict=True):
        rows = row_influence(matrix, inputs, gradient)
        unweighted = rows.matrices(torch.arange(nodes)).sum(0)
        torch.testing.assert_close(unweighted, expected, rtol=1e-5, atol=1e-6)


def test_renormalization_alone_does_not_weight_everybody_alike() -> None:
    star = torch.zeros(6, 6, dtype=torch.float64)
    star[0, 1:] = star[1:, 0] = 1
    parts, _ = backward(renormalized(star), 1, 0)
    degree = node_influence(renormalized(star), parts).row_degree
    assert degree[0] > 1.5 * degree[1:].max()


@given(st.integers(0, 10_000), st.integers(2, 15))
@settings(max_examples=30, deadline=None)
def test_the_sums_hold_where_the_matrix_is_not_symmetric(seed: int, nodes: int) -> None:
    """Row-normalised with a node nobody points to: rows sum to 1, columns do not."""
    matrix = random_graph(seed, nodes) * torch.rand(nodes, nodes, dtype=torch.float64)
    matrix[:, 0] = 0
    parts, gradients = backward(matrix, 2, seed)
    for (inputs, gradient), expected in zip(parts, gradients, strict=True):
        rows = row_influence(matrix, inputs, gradient)
        columns = column_influence(matrix, inputs, gradient)
        torch.testing.assert_close(rows.total(), expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(columns.total(), expected, rtol=0, atol=1e-10)
        assert rows.norms()[0] == 0
        assert rows.right.isfinite().all()


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
@pytest.mark.parametrize("feature_layout", [torch.strided, torch.sparse_csr, torch.sparse_coo])
def test_sparse_inputs_stay_sparse_and_give_the_same(
    layout: torch.layout, feature_layout: torch.layout
) -> None:
    rng = torch.Generator().manual_seed(0)
    dense = renormalized(random_graph(0, 12))
    features = torch.rand(12, 30, generator=rng, dtype=torch.float64)
    features[features < 0.8] = 0
    ((_, gradient),), (expected,) = backward(dense, 1, 0, features)
    matrix = dense.to_sparse(layout=layout)
    inputs = features
    if feature_layout != torch.strided:
        inputs = features.to_sparse(layout=feature_layout)
    for influence in (row_influence, column_influence):
        slow = influence(dense, features, gradient)
        fast = influence(matrix, inputs, gradient)
        if feature_layout != torch.strided:
            assert fast.left.layout != torch.strided
        torch.testing.assert_close(fast.total(), expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(fast.norms(), slow.norms())
        chosen = torch.tensor([3, 11, 0])
        torch.testing.assert_close(fast.matrices(chosen), slow.matrices(chosen))


def test_norms_of_all_layers_stand_in_one_table() -> None:
    matrix = renormalized(random_graph(2, 10))
    parts, _ = backward(matrix, 4, 2)
    influence = node_influence(matrix, parts)
    assert influence.row.shape == influence.column.shape == (4, 10)
    for layer, (inputs, gradient) in enumerate(parts):
        torch.testing.assert_close(
            influence.row[layer], row_influence(matrix, inputs, gradient).norms()
        )
        torch.testing.assert_close(
            influence.column[layer], column_influence(matrix, inputs, gradient).norms()
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.lists(st.tuples(*[st.integers(0, 11)] * 2), max_size=40))
def test_row_sums_are_those_of_the_dense_matrix(nodes: int, pairs: list[tuple[int, int]]) -> None:
    dense = np.zeros((nodes, nodes))
    for u, v in pairs:
        if u % nodes != v % nodes:
            dense[u % nodes, v % nodes] = dense[v % nodes, u % nodes] = 1
    edges = torch.from_numpy(np.stack(np.nonzero(dense)))
    degree = dense.sum(1)
    scale = np.diag(1 / np.sqrt(degree + 1))
    found = degrees_in_laplacian(Data(edge_index=edges, num_nodes=nodes))
    np.testing.assert_array_equal(found[0], degree)
    np.testing.assert_allclose(found[1], (scale @ (dense + np.eye(nodes)) @ scale).sum(1))
