"""The fair gradient against the dense formula, layer by layer, in float64."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch import Tensor, nn
from torch_geometric.data import Data

from rawlsgcn.methods import Inputs
from rawlsgcn.methods._ops.convolution import GraphConvolutionalNetwork, graph_convolution
from rawlsgcn.methods._ops.fixed_matrix import FixedMatrix
from rawlsgcn.methods.base import normalized_adjacency

FORMS = ["row", "column", "symmetric", "doubly-stochastic"]


def dense_gradients(
    graph: Data, weights: list[Tensor], biases: list[Tensor], forward: Tensor, fair: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """∂J/∂W^(l) = (H^(l-1))ᵀ Gᵀ ∂J/∂E^(l), written out with dense matrices."""
    h = graph.x.to_dense()
    h = h / h.sum(1, keepdim=True).where(h.sum(1, keepdim=True) > 0, 1.0)
    inputs, outputs = [], []
    for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        h = torch.relu(h) if index else h
        inputs.append(h)
        h = (forward @ h @ weight + bias).detach().requires_grad_()
        outputs.append(h)
    train = graph.train_mask
    one_hot = nn.functional.one_hot(graph.y, h.shape[1]).double()
    grad = torch.zeros_like(h)
    grad[train] = (torch.softmax(h, 1) - one_hot)[train].detach() / train.sum()
    answer = []
    for index in reversed(range(len(weights))):
        answer.insert(0, (inputs[index].t() @ fair.t() @ grad, grad.sum(0)))
        grad = forward.t() @ grad @ weights[index].t()
        if index:
            grad = grad * (outputs[index - 1] > 0)
    return [(weight.detach(), bias.detach()) for weight, bias in answer]


@settings(max_examples=150, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 4), form=st.sampled_from([None, *FORMS]))
def test_gradient_equals_the_dense_formula(graph: Data, layers: int, form: str | None) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    sizes = [inputs.num_features, *[5] * (layers - 1), inputs.num_classes]
    network = GraphConvolutionalNetwork(sizes, dropout=0.0)
    network.reset_parameters(torch.Generator().manual_seed(0))
    network.double()
    forward = normalized_adjacency(inputs, "renormalized")
    fair = None if form is None else normalized_adjacency(inputs, form)
    logits = network(FixedMatrix.of(inputs.x), forward, fair)
    nn.functional.cross_entropy(logits[inputs.train], inputs.y[inputs.train]).backward()

    laplacian = dense_form(graph, "renormalized")
    expected = dense_gradients(
        graph,
        [layer.weight.detach() for layer in network.layers],
        [layer.bias.detach() for layer in network.layers],
        laplacian,
        laplacian if form is None else dense_form(graph, form),
    )
    for layer, (weight, bias) in zip(network.layers, expected, strict=True):
        torch.testing.assert_close(layer.weight.grad, weight, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(layer.bias.grad, bias, rtol=1e-8, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(graph=graphs(max_nodes=6))
def test_ordinary_gradient_passes_gradcheck(graph: Data) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    propagation = normalized_adjacency(inputs, "row")
    generator = torch.Generator().manual_seed(0)
    shape = (inputs.num_nodes, 3)
    h = torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
    w = torch.randn(3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: graph_convolution(a, b, propagation), (h, w))


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_fair_gradient_leaves_the_inputs_gradient_alone(graph: Data) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    propagation = normalized_adjacency(inputs, "renormalized")
    fair = normalized_adjacency(inputs, "doubly-stochastic")
    h = torch.rand(inputs.num_nodes, 3, dtype=torch.float64, requires_grad=True)
    w = torch.rand(3, 2, dtype=torch.float64)
    (plain,) = torch.autograd.grad(graph_convolution(h, w, propagation).sum(), h)
    (same,) = torch.autograd.grad(graph_convolution(h, w, propagation, fair).sum(), h)
    assert torch.equal(plain, same)


def test_dropout_is_part_of_the_layer_input_in_the_fair_gradient() -> None:
    """H^(l-1) in the formula is the layer's input after dropout."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = Data(edge_index=edge_index, num_nodes=4, x=torch.eye(4, dtype=torch.float64))
    graph.y, mask = torch.tensor([0, 1, 0, 1]), torch.ones(4, dtype=torch.bool)
    graph.train_mask = graph.val_mask = graph.test_mask = mask
    inputs = Inputs.of(graph, dtype=torch.float64)
    fair = normalized_adjacency(inputs, "doubly-stochastic")
    network = GraphConvolutionalNetwork([4, 8, 2], dropout=0.5)
    network.reset_parameters(torch.Generator().manual_seed(1))
    network.double().train()
    seen: list[Tensor] = []
    network.layers[1].register_forward_pre_hook(lambda _, args: seen.append(args[0].detach()))
    out = network(FixedMatrix.of(inputs.x), normalized_adjacency(inputs, "renormalized"), fair)
    grad = torch.rand_like(out)
    out.backward(grad)
    expected = seen[0].t() @ dense_form(graph, "doubly-stochastic").t() @ grad
    assert (seen[0] == 0).any()
    torch.testing.assert_close(network.layers[1].weight.grad, expected)
