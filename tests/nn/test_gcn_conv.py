"""FairGCNConv is GCNConv in every respect but its weight's gradient."""

from __future__ import annotations

import copy
import inspect
import io
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from rawlsgcn import RawlsError
from rawlsgcn.nn import FairGCNConv

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def adjacency(graph: Data, form: str) -> tuple[Any, Tensor | None]:
    """The same graph in every form that GCNConv takes."""
    n, weight = graph.num_nodes, graph.get("edge_weight")
    if form == "edges":
        return graph.edge_index, weight
    if form == "EdgeIndex":
        return EdgeIndex(graph.edge_index, sparse_size=(n, n)), weight
    values = torch.ones(graph.num_edges, dtype=torch.float64) if weight is None else weight
    maker = to_torch_coo_tensor if form == "coo" else to_torch_csr_tensor
    return maker(graph.edge_index, values, size=(n, n)).transpose(0, 1).to_sparse(
        layout=torch.sparse_coo if form == "coo" else torch.sparse_csr
    ), None


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), form=st.sampled_from(["edges", "EdgeIndex", "coo", "csr"]))
def test_every_form_of_adjacency(graph: Data, form: str) -> None:
    plain, fair = GCNConv(-1, 3).double(), FairGCNConv(-1, 3).double()
    x, (edges, weight) = graph.x.to_dense(), adjacency(graph, form)
    plain(x, edges, weight)
    fair.load_state_dict(plain.state_dict())
    out = fair(x, edges, weight)
    torch.testing.assert_close(out, plain(x, edges, weight), rtol=0, atol=0)
    grad = torch.rand_like(out)
    out.backward(grad)
    expected = grad.t() @ dense_form(graph, "doubly-stochastic") @ x
    torch.testing.assert_close(fair.lin.weight.grad, expected, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(fair.bias.grad, grad.sum(0))


def test_the_signature_is_that_of_gcn_conv() -> None:
    assert inspect.signature(FairGCNConv.__init__) == inspect.signature(GCNConv.__init__)
    ours = list(inspect.signature(FairGCNConv.forward).parameters)
    assert ours == [*inspect.signature(GCNConv.forward).parameters, "fair_weight"]
    assert str(FairGCNConv(4, 2)) == "FairGCNConv(4, 2)"


@pytest.mark.parametrize(("one", "two"), [(GCNConv, FairGCNConv), (FairGCNConv, GCNConv)])
@pytest.mark.parametrize("inputs", [5, -1])
def test_checkpoints_are_exchangeable(one: Any, two: Any, inputs: int) -> None:
    torch.manual_seed(0)
    x, source, target = torch.rand(3, 5), one(5, 4), two(inputs, 4)
    file = io.BytesIO()
    torch.save(source.state_dict(), file)
    file.seek(0)
    target.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(source(x, PATH), target(x, PATH))


def test_nothing_is_balanced_where_no_weight_learns() -> None:
    """A directed path has no doubly stochastic form, which only training asks for."""
    layer, x, directed = FairGCNConv(2, 2), torch.rand(3, 2), PATH[:, ::2]
    with torch.no_grad():
        layer(x, directed)
    with torch.inference_mode():
        layer(x, directed)
    with pytest.raises(RawlsError, match=r"no doubly stochastic form.*sample.*fair_weight"):
        layer(x, directed)
    layer.lin.weight.requires_grad_(False)
    assert layer(x, directed).requires_grad  # the bias still learns


def test_a_cached_layer_keeps_its_first_graph_until_reset() -> None:
    layer, x = FairGCNConv(2, 3, cached=True), torch.rand(3, 2)
    other = torch.tensor([[0, 2], [2, 0]])
    share = torch.arange(3.0)[:, None]  # a plain sum would not tell: every column of B sums to 1

    def gradient(edges: Tensor) -> Tensor:
        layer.zero_grad()
        (layer(x, edges) * share).sum().backward()
        return layer.lin.weight.grad.clone()

    first = gradient(PATH)
    assert torch.equal(gradient(other), first)
    layer.reset_parameters()
    assert not torch.allclose(gradient(other), first)


def test_flow_and_batches_of_features_on_one_graph() -> None:
    """Extra leading dimensions are summed over, as in any Linear layer's gradient."""
    torch.manual_seed(0)
    layer = FairGCNConv(2, 4, flow="target_to_source").double()
    x = torch.rand(5, 3, 2, dtype=torch.float64)
    out = layer(x, PATH)
    assert torch.equal(out, GCNConv.forward(layer, x, PATH))
    grad = torch.rand_like(out)
    out.backward(grad)
    B = dense_form(Data(edge_index=PATH, num_nodes=3), "doubly-stochastic")
    expected = sum(g.t() @ B @ h for g, h in zip(grad, x, strict=True))
    torch.testing.assert_close(layer.lin.weight.grad, expected)


def test_a_directed_graph_with_a_form_is_pulled_the_right_way() -> None:
    """On a directed cycle Â_DS is not symmetric: ∂J/∂W = Gᵀ Â_DS X, not its transpose."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    layer = FairGCNConv(3, 2, bias=False).double()
    x = torch.rand(3, 3, dtype=torch.float64)
    out = layer(x, edges)
    grad = torch.rand_like(out)
    out.backward(grad)
    B = (torch.eye(3) + torch.eye(3).roll(1, 0)).double() / 2  # row i: itself and i - 1
    torch.testing.assert_close(layer.lin.weight.grad, grad.t() @ B @ x)


@pytest.mark.parametrize("wide", [False, True])
def test_both_orders_of_the_product_agree(wide: bool) -> None:
    """The narrower of H and ∂J/∂E travels along the edges."""
    layer = FairGCNConv(2, 7).double() if wide else FairGCNConv(7, 2).double()
    x = torch.rand(3, layer.in_channels, dtype=torch.float64)
    out = layer(x, PATH)
    grad = torch.rand_like(out)
    out.backward(grad)
    B = dense_form(Data(edge_index=PATH, num_nodes=3), "doubly-stochastic")
    torch.testing.assert_close(layer.lin.weight.grad, grad.t() @ B @ x)


@pytest.mark.parametrize("cached", [False, True])
def test_copies_and_pickles_stay_fair(cached: bool) -> None:
    layer, x = FairGCNConv(2, 3, cached=cached), torch.rand(3, 2)
    layer(x, PATH).sum().backward()
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for other in (copy.deepcopy(layer), torch.load(file, weights_only=False)):
        other.zero_grad()
        other(x, PATH).sum().backward()
        assert torch.equal(other.lin.weight.grad, layer.lin.weight.grad)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
@pytest.mark.parametrize("outputs", [2, 9])
def test_sparse_features(layout: torch.layout, outputs: int) -> None:
    torch.manual_seed(0)
    layer, x = FairGCNConv(4, outputs), torch.rand(3, 4) * (torch.rand(3, 4) < 0.5)
    grads = []
    for features in (x, x.to_sparse(layout=layout)):
        layer.zero_grad()
        layer(features, PATH).square().sum().backward()
        grads.append(layer.lin.weight.grad.clone())
    torch.testing.assert_close(*grads)


def test_the_output_may_be_changed_in_place() -> None:
    layer = FairGCNConv(2, 3, bias=False)
    layer(torch.rand(3, 2), PATH).relu_().sum().backward()
    assert layer.lin.weight.grad is not None


def test_a_pair_of_features_is_refused_as_by_gcn_conv() -> None:
    with pytest.raises(ValueError, match="bipartite"):
        FairGCNConv(2, 3)((torch.rand(3, 2), torch.rand(3, 2)), PATH)
