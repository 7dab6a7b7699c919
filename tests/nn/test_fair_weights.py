"""Activation checkpointing repeats the forward pass in backward; given weights are given again."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import pytest
import torch
from nn.kinds import KINDS, Stack
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import EdgeIndex
from torch_geometric.nn import APPNP

from rawlsgcn import RawlsError
from rawlsgcn.nn import FairGCNConv, FairSAGEConv, fair_weights, make_fair

NODES = 5
EDGES = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3, 3, 4], [1, 0, 2, 1, 0, 2, 3, 2, 4, 3]])
REENTRANT = pytest.mark.parametrize("reentrant", [False, True])


class Propagation(nn.Module):
    """Linear layers before APPNP."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.last = nn.Linear(3, 4), APPNP(2, 0.1)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return self.last(self.linear(x), edge_index)


def made(kind: str) -> nn.Module:
    torch.manual_seed(0)
    model: nn.Module = Propagation() if kind == "APPNP" else Stack(KINDS[kind], 3, 2)
    make_fair(model).double()
    with torch.no_grad():  # sizes of lazy layers
        model(features(), EDGES)
    return model


def features() -> Tensor:
    return torch.rand(NODES, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def given(edges: Tensor, seed: int = 2) -> Tensor:
    """Weights that no balancing gives."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(edges.shape[1] + NODES, dtype=torch.float64, generator=generator)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def forward(model: Any, edges: Any, reentrant: bool | None) -> Tensor:
    x = features().requires_grad_()  # reentrant checkpointing asks for it
    if reentrant is None:
        out = model(x, edges)
    else:
        out = checkpoint(model, x, edges, use_reentrant=reentrant)
    return (out.sin() * torch.arange(out.numel()).view_as(out)).sum()


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-10, msg=name)


@REENTRANT
@pytest.mark.parametrize("kind", [*KINDS, "APPNP"])
def test_gradients_are_those_without_checkpointing(kind: str, reentrant: bool) -> None:
    model, weights = made(kind), given(EDGES)
    with fair_weights(model, weights):
        loss = forward(model, EDGES, None)
    loss.backward()
    expected = gradients(model)
    with fair_weights(model, weights):
        loss = forward(model, EDGES, reentrant)
    loss.backward()
    assert_same(gradients(model), expected)
    forward(model, EDGES, None).backward()
    derived = gradients(model)
    assert any(not torch.allclose(derived[name], expected[name]) for name in expected)
    forward(model, EDGES, reentrant).backward()  # and what is given is over then
    assert_same(gradients(model), derived)


@REENTRANT
def test_the_weight_learns_from_the_given_matrix(reentrant: bool) -> None:
    """(∂J/∂E)ᵀ B X with the given B, dense, on a sample that itself has no such form."""
    torch.manual_seed(0)
    directed = EDGES[:, :4:2].clone()
    layer, fair, x = FairGCNConv(3, 2).double(), given(directed), features().requires_grad_()
    with fair_weights(layer, fair):
        out = checkpoint(layer, x, directed, use_reentrant=reentrant)
    gradient = torch.rand_like(out)
    out.backward(gradient)
    B = torch.zeros(NODES, NODES, dtype=torch.float64)
    B[directed[1], directed[0]] = fair[:2]
    expected = gradient.t() @ (B + fair[2:].diag()) @ features()
    torch.testing.assert_close(layer.lin.weight.grad, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("layout", "reentrant"),
    [
        *(("edge index", True), ("edge index", False), (torch.sparse_csr, True)),
        *((torch.sparse_csr, False), (torch.sparse_coo, True)),  # without it torch refuses COO
    ],
)
def test_every_form_of_graph_is_found_again(layout: Any, reentrant: bool) -> None:
    torch.manual_seed(0)
    layer, edges = FairGCNConv(3, 2).double(), EDGES[:, EDGES[1].argsort(stable=True)]
    graph: Any = EdgeIndex(edges, sparse_size=(NODES, NODES))
    if layout != "edge index":
        ones = torch.ones(edges.shape[1], dtype=torch.float64)
        graph = torch.sparse_coo_tensor(edges.flip(0), ones, (NODES, NODES)).coalesce()
        graph = graph.to_sparse(layout=layout)
    found = []
    for mode in (None, reentrant):
        with fair_weights(layer, given(edges)):
            loss = forward(layer, graph, mode)
        loss.backward()
        found.append(gradients(layer))
    assert_same(found[1], found[0])


@REENTRANT
def test_samples_keep_their_own_weights_until_backward(reentrant: bool) -> None:
    """Gradients of several samples added up, in any order, and inside another sample's with."""
    model = made("GCN")
    samples = [EDGES.clone(), EDGES[:, :6].clone(), EDGES.clone()]
    expected, losses = [], []
    for seed, edges in enumerate(samples):
        with fair_weights(model, given(edges, seed)):
            loss = forward(model, edges, None)
        loss.backward()
        expected.append(gradients(model))
    for seed, edges in enumerate(samples):
        with fair_weights(model, given(edges, seed)):
            losses.append(forward(model, edges, reentrant))
    for place in (1, 0):
        losses[place].backward()
        assert_same(gradients(model), expected[place])
    with fair_weights(model, given(samples[0], 9)):
        losses[2].backward()
    assert_same(gradients(model), expected[2])


@REENTRANT
def test_a_graph_made_within_the_checkpointed_part_is_refused(reentrant: bool) -> None:
    """Rather than balanced as if it were the whole graph."""
    layer = FairSAGEConv(3, 2).double()

    def part(x: Tensor, edges: Tensor) -> Tensor:
        return layer(x, edges.clone())

    with fair_weights(layer, given(EDGES)):
        loss = forward(part, EDGES, reentrant)
    with pytest.raises(RawlsError, match=r"made within the checkpointed part.*fair_weight"):
        loss.backward()


@REENTRANT
def test_a_layer_without_given_weights_balances_in_both_passes(reentrant: bool) -> None:
    layer = FairSAGEConv(3, 2).double()
    found = []
    for mode in (None, reentrant):
        loss = forward(lambda x, edges: layer(x, edges.clone()), EDGES, mode)
        loss.backward()
        found.append(gradients(layer))
    assert_same(found[1], found[0])


def test_nothing_is_kept_longer_than_the_graph() -> None:
    layer = FairGCNConv(3, 2).double()
    for _ in range(3):
        edges = EDGES.clone()
        with fair_weights(layer, given(edges)):
            forward(layer, edges, None).backward()
        assert len(layer._stored_fair_weights) == 1
    del edges
    gc.collect()
    assert not layer._stored_fair_weights
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again._stored_fair_weights is None
        forward(again, EDGES, None).backward()
