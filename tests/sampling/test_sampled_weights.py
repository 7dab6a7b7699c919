"""Weights of sampled arcs: exact with all neighbors, right in expectation with some; two vectors
give every entry of every normalization."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling.copies import copied, small_graph, z_values
from strategies import dense_form, graphs
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import NORMALIZATIONS, propagation_matrix
from rawlsgcn.nn import FairGCNConv, fair_weights
from rawlsgcn.sampling import Adjacency, Factors, NeighborSampler, SampledWeights
from rawlsgcn.sampling.sampled_weights import doubly_stochastic_scale

SEEDS = torch.arange(0, 24, 3)


class Linear(nn.Module):
    """Fair convolutions without anything between them."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        sizes = [3, *[3] * (layers - 1), 2]
        self.layers = nn.ModuleList(
            FairGCNConv(a, b, normalize=False) for a, b in itertools.pairwise(sizes)
        ).double()

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, edge_index, edge_weight)
        return x


def gradients(
    graph: Data, model: nn.Module, num_neighbors: list[int], copies: int, weights: SampledWeights
) -> Tensor:
    """The sampled gradient of a loss that is linear in the logits of the seeds."""
    seeds = (SEEDS + 24 * torch.arange(copies)[:, None]).view(-1)
    sampler = NeighborSampler(graph, num_neighbors)
    loader = NodeLoader(graph, sampler, seeds, transform=weights, batch_size=len(seeds))
    (batch,) = loader
    model.zero_grad()
    with fair_weights(model, batch.fair_weight):
        out = model(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
    slopes = torch.linspace(-1, 1, 2 * len(SEEDS), dtype=torch.float64).view(-1, 2)
    (out * slopes.repeat(copies, 1)).sum().div(copies).backward()
    return torch.cat([layer.lin.weight.grad.view(-1) for layer in model.layers])


def exact_gradients(graph: Data, model: nn.Module) -> Tensor:
    """∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E, dense."""
    forward, fair = dense_form(graph, "renormalized"), dense_form(graph, "doubly-stochastic")
    weights = [layer.lin.weight.detach().t() for layer in model.layers]
    hidden = [graph.x]
    for layer, weight in zip(model.layers, weights, strict=True):
        hidden.append(forward @ hidden[-1] @ weight + layer.bias.detach())
    above = torch.zeros(24, 2, dtype=torch.float64)
    above[SEEDS] = torch.linspace(-1, 1, 2 * len(SEEDS), dtype=torch.float64).view(-1, 2)
    found = []
    for h, weight in zip(hidden[-2::-1], weights[::-1], strict=True):
        found.append((h.t() @ fair.t() @ above).t().reshape(-1))
        above = forward.t() @ above @ weight.t()
    return torch.cat(found[::-1])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_all_neighbours_give_the_whole_graphs_gradient(layers: int) -> None:
    graph, model = small_graph(), Linear(layers)
    weights = SampledWeights(graph, dtype=torch.float64)
    ours = gradients(graph, model, [-1] * layers, 1, weights)
    torch.testing.assert_close(ours, exact_gradients(graph, model), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("layers", "right"), [(1, True), (2, True), (3, False)])
def test_the_expectation_is_the_whole_graphs_gradient(layers: int, right: bool) -> None:
    """Exactly so for two linear layers; from the third on one row may be met twice on a path.

    The third layer also shows that the test can tell.
    """
    model, copies = Linear(layers), 150
    graph = small_graph()
    many = copied(graph, copies)
    weights = SampledWeights(many, dtype=torch.float64)
    torch.manual_seed(1)
    samples = [gradients(many, model, [2] * layers, copies, weights) for _ in range(40)]
    z = z_values(samples, exact_gradients(graph, model)).abs().max()
    assert (z < 4.5) if right else (z > 6)


def test_the_forward_form_may_be_the_doubly_stochastic_one() -> None:
    graph = small_graph()
    weights = SampledWeights(graph, "doubly-stochastic", dtype=torch.float64)
    sampler = NeighborSampler(graph, [-1])
    (batch,) = NodeLoader(graph, sampler, torch.arange(24), transform=weights, batch_size=24)
    dense = torch.zeros(24, 24, dtype=torch.float64)
    dense[tuple(batch.n_id[batch.edge_index])] = batch.edge_weight
    torch.testing.assert_close(dense.sum(0), torch.ones(24, dtype=torch.float64), rtol=0, atol=1e-7)
    assert torch.equal(batch.edge_weight, batch.fair_weight)


def test_wrong_graphs_are_told() -> None:
    graph = small_graph()
    looped = Data(edge_index=torch.tensor([[0, 1, 0], [1, 0, 0]]), num_nodes=2)
    with pytest.raises(RawlsError, match="has self-loops"):
        SampledWeights(looped)
    weights = SampledWeights(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
    sampler = NeighborSampler(graph, [2])
    loader = NodeLoader(graph, sampler, torch.tensor([20]), transform=weights)
    with pytest.raises(RawlsError, match="another graph"):
        next(iter(loader))


PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("fair", [True, False])
@pytest.mark.parametrize(
    ("graph", "options", "said"),
    [
        (Data(num_nodes=2), {}, "needs a graph with an edge_index"),
        (Data(edge_index=PAIR, edge_weight=torch.ones(1), num_nodes=2), {}, "for 2 edges"),
        (Data(edge_index=PAIR, edge_weight=-torch.ones(2), num_nodes=2), {}, "of at least 0"),
        (Data(edge_index=PAIR, edge_weight=torch.ones(2) / 0, num_nodes=2), {}, "only finite"),
        (Data(edge_index=PAIR, num_nodes=2), {"dtype": torch.int32}, "not in torch.int32"),
        (
            Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3),
            {},
            "graph is not symmetric",
        ),
        (Data(edge_index=PAIR, num_nodes=1), {}, "node 1, but the 1 nodes"),
    ],
)
def test_graphs_that_would_give_wrong_weights_are_told(
    graph: Data, options: dict[str, Any], said: str, fair: bool
) -> None:
    with pytest.raises(RawlsError, match=said):
        SampledWeights(graph, fair=fair, **options)


def test_batches_that_do_not_fit_are_told() -> None:
    weighted = Data(edge_index=PAIR, edge_weight=torch.ones(2), num_nodes=2)
    weights = SampledWeights(weighted)
    with pytest.raises(RawlsError, match="the batch has no n_id"):
        weights(weighted)
    whole = torch.arange(2)
    with pytest.raises(RawlsError, match="the batch has no edge_weight"):
        weights(Data(edge_index=PAIR, n_id=whole, num_nodes=2))
    with pytest.raises(RawlsError, match="for 2 edges"):
        weights(Data(edge_index=PAIR, edge_weight=torch.ones(1), n_id=whole, num_nodes=2))


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
