"""make_fair: every weight's gradient is the dense formula's, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.dense import adjacency, balanced, pagerank, with_loops
from nn.kinds import KINDS, WIDTH, Kind, Stack, form
from strategies import graphs
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import APPNP

from rawlsgcn.nn import make_fair


def close(actual: Tensor, expected: Tensor) -> None:
    scale = float(expected.abs().max()) + 1e-3
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-9 * scale)


def run(model: nn.Module, graph: Data, weighted: bool) -> tuple[Tensor, Tensor]:
    """Predictions and the gradient of the features, of a loss that no node leaves out."""
    x = graph.x.to_dense().requires_grad_()
    out = model(x, graph.edge_index, graph.edge_weight if weighted else None)
    model.zero_grad()
    (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sin().sum().backward()
    return out.detach(), x.grad


def expected_gradients(model: Stack, kind: Kind, graph: Data) -> dict[str, Tensor]:
    """The plain model's gradients, with the dense formula in place of those of the weights.

    H and ∂J/∂E are the plain model's own: the fair gradient changes neither.
    """
    seen: list[tuple[Any, Tensor, Tensor]] = []
    inputs: dict[Any, Tensor] = {}
    handles = []
    for layer in model.convs:

        def before(module: Any, args: Any) -> None:
            inputs[module] = args[0].detach()
            if len(args) > 2:
                module.seen_initial = args[1].detach()

        def after(module: Any, _: Any, out: Tensor, layer: Any = layer) -> None:
            out.retain_grad()
            seen.append((layer, inputs[layer], out))

        handles.append(layer.register_forward_pre_hook(before))
        handles.append(kind.linear(layer).register_forward_hook(after))
    run(model, graph, kind.weighted)
    for handle in handles:
        handle.remove()
    answer = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    paths = {layer: path for path, layer in model.named_modules()}
    for layer, h, out in seen:
        for name, grad in kind.fair(layer, h, out.grad, form(kind, layer, graph)).items():
            assert f"{paths[layer]}.{name}" in answer
            answer[f"{paths[layer]}.{name}"] = grad
    return answer


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3), seed=st.integers(0, 99))
def test_gradients_equal_the_dense_formula(name: str, graph: Data, layers: int, seed: int) -> None:
    kind = KINDS[name]
    torch.manual_seed(seed)
    model = Stack(kind, graph.x.shape[1], layers).double()
    plain, plain_grad = run(model, graph, kind.weighted)
    expected = expected_gradients(model, kind, graph)
    parameters = dict(model.named_parameters())
    for layer in model.convs:  # a cached layer starts afresh
        layer._cached_edge_index = None

    assert make_fair(model) is model
    fair, fair_grad = run(model, graph, kind.weighted)
    assert torch.equal(fair, plain)
    assert torch.equal(fair_grad, plain_grad)
    assert dict(model.named_parameters()).keys() == parameters.keys()
    for path, parameter in model.named_parameters():
        assert parameter is parameters[path]
        close(parameter.grad, expected[path])


@settings(max_examples=40, deadline=None)
@given(
    graph=graphs(),
    K=st.integers(0, 5),
    alpha=st.sampled_from([0.1, 0.5]),
    normalize=st.booleans(),
)
def test_weights_before_a_propagation_without_weights(
    graph: Data, K: int, alpha: float, normalize: bool
) -> None:
    """∂J/∂Z = Π(Â_DS)ᵀ ∂J/∂E, and from Z to the weights as usual."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(graph.x.shape[1], 5), nn.Tanh(), nn.Linear(5, WIDTH)).double()
    propagation = APPNP(K, alpha, normalize=normalize)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.propagation = network, propagation

        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
            self.z = self.network(x)
            self.out = self.propagation(self.z, edge_index, edge_weight)
            self.out.retain_grad()
            return self.out

    model = Model()
    plain, _ = run(model, graph, True)
    grad = model.out.grad
    make_fair(model)
    fair, _ = run(model, graph, True)
    assert torch.equal(plain, fair)
    actual = [parameter.grad for parameter in network.parameters()]
    B = balanced(with_loops(adjacency(graph)))
    reaching = pagerank(B, K, alpha).t() @ grad
    z = network(graph.x.to_dense())
    for one, two in zip(
        actual, torch.autograd.grad(z, network.parameters(), reaching), strict=True
    ):
        close(one, two)


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), name=st.sampled_from(["GCN", "SAGE", "GraphConv", "GIN, MLP", "TAG"]))
def test_self_loops_among_the_edges_are_the_layers_own(graph: Data, name: str) -> None:
    kind = KINDS[name]
    loop = torch.tensor([[0, 1], [0, 1]])
    weight = graph.get("edge_weight")
    graph = Data(
        x=graph.x, edge_index=torch.cat([loop, graph.edge_index], 1), num_nodes=graph.num_nodes
    )
    if weight is not None:
        graph.edge_weight = torch.cat([torch.tensor([0.7, 2.0], dtype=torch.float64), weight])
    torch.manual_seed(0)
    model = Stack(kind, graph.x.shape[1], 2).double()
    expected = expected_gradients(model, kind, graph)
    make_fair(model)
    run(model, graph, kind.weighted)
    for path, parameter in model.named_parameters():
        close(parameter.grad, expected[path])


ADDING = ["SAGE", "GraphConv", "GIN, MLP", "TAG", "GCN, no loops", "GCN, not normalised"]


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), name=st.sampled_from([*ADDING, "GCN"]))
def test_repeated_self_loops_are_what_the_layer_makes_of_them(graph: Data, name: str) -> None:
    """Messages add up; the normalisation that adds self-loops takes the last of a node's own."""
    kind = KINDS[name]
    loop, weights = torch.tensor([[0, 1, 0], [0, 1, 0]]), torch.tensor([0.7, 2.0, 1.5])
    weight = graph.get("edge_weight")
    raw = Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    seen = raw.clone()
    kept = slice(None) if name in ADDING else slice(1, None)
    raw.edge_index = torch.cat([loop, graph.edge_index], 1)
    seen.edge_index = torch.cat([loop[:, kept], graph.edge_index], 1)
    if weight is not None:
        raw.edge_weight = torch.cat([weights.double(), weight])
        seen.edge_weight = torch.cat([weights.double()[kept], weight])
    torch.manual_seed(0)
    model = Stack(kind, graph.x.shape[1], 2).double()
    expected = expected_gradients(model, kind, seen)
    make_fair(model)
    run(model, raw, kind.weighted)
    for path, parameter in model.named_parameters():
        close(parameter.grad, expected[path])
