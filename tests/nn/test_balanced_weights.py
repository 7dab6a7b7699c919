"""Where the fair layers' matrices come from: given, remembered, or made from the graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from nn.dense import adjacency, balanced, with_loops
from strategies import graphs
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GraphSAGE
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import rawlsgcn as rg
from rawlsgcn import RawlsError
from rawlsgcn.nn import (
    FairGCNConv,
    FairGINConv,
    FairGraphConv,
    FairSAGEConv,
    FairSGConv,
    fair_weights,
    make_fair,
)
from rawlsgcn.nn import balanced_weights as module

TRIANGLE = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that a graph is balanced."""
    made: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        made.append(len(made))
        return rg.balance(*args, **kwargs)

    monkeypatch.setattr(module, "balance", counted)
    return made


def train(model: nn.Module, x: Tensor, *graph: Any, **options: Any) -> list[Tensor]:
    model.zero_grad()
    model(x, *graph, **options).square().sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_a_graph_is_balanced_once_for_all_layers_and_steps(calls: list[int]) -> None:
    model, edges = make_fair(GCN(2, 4, 3)), TRIANGLE.clone()
    for _ in range(5):
        train(model, torch.rand(4, 2), edges)
    assert len(calls) == 1


def test_a_changed_graph_is_balanced_again(calls: list[int]) -> None:
    torch.manual_seed(0)
    layer, edges, weight, x = FairGCNConv(2, 3), TRIANGLE.clone(), torch.ones(8), torch.rand(4, 2)
    before = train(layer, x, edges, weight)
    weight[:2] = 5.0
    after = train(layer, x, edges, weight)
    assert len(calls) == 2
    assert not torch.allclose(before[1], after[1])
    torch.testing.assert_close(after, train(layer, x, edges.clone(), weight.clone()))
    edges[:, :2] = edges[:, 2:4]
    train(layer, x, edges, weight)
    assert len(calls) == 4


def through_numpy(tensor: Tensor, place: int, value: float) -> None:
    tensor.numpy()[..., place] = value


def through_data(tensor: Tensor, place: int, value: float) -> None:
    tensor.data[..., place] = value


def through_data_as_a_whole(tensor: Tensor, place: int, value: float) -> None:
    changed = tensor.clone()
    changed[..., place] = value
    tensor.data = changed


HIDDEN = [through_numpy, through_data, through_data_as_a_whole]


@pytest.mark.parametrize("change", HIDDEN)
def test_a_change_that_torch_does_not_count_is_noticed(change: Any, calls: list[int]) -> None:
    """What the layer learns is what a layer learns that never saw the graph before."""
    torch.manual_seed(0)
    layer, edges, weight, x = FairGCNConv(2, 3), TRIANGLE.clone(), torch.ones(8), torch.rand(4, 2)
    before = train(layer, x, edges, weight)
    version = weight._version
    change(weight, 0, 5.0)
    change(weight, 1, 5.0)
    assert change is through_data_as_a_whole or weight._version == version
    after = train(layer, x, edges, weight)
    assert not torch.allclose(before[1], after[1])
    module._cache.clear()
    torch.testing.assert_close(after, train(layer, x, edges.clone(), weight.clone()))
    count = len(calls)
    change(edges, 0, 2)  # the edge from 0 to 1 becomes a self-loop of 2
    change(edges, 1, 2)
    after = train(layer, x, edges, weight)
    assert len(calls) == count + 1
    module._cache.clear()
    torch.testing.assert_close(after, train(layer, x, edges.clone(), weight.clone()))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_a_hidden_change_of_a_sparse_matrix_is_noticed(layout: Any, calls: list[int]) -> None:
    torch.manual_seed(0)
    whole = torch.eye(4).roll(1, 0) + torch.eye(4).roll(-1, 0)
    matrix, layer = whole.to_sparse(layout=layout), FairSAGEConv(2, 3, aggr="sum")
    x = torch.rand(4, 2)
    for _ in range(3):
        before = train(layer, x, matrix)
    assert len(calls) == 1
    values = matrix._values() if layout == torch.sparse_coo else matrix.values()
    values.numpy()[:] = 0.25
    after = train(layer, x, matrix)
    assert len(calls) == 2
    assert not torch.allclose(before[0], after[0])
    module._cache.clear()
    torch.testing.assert_close(after, train(layer, x, matrix.clone()))


def test_the_same_sum_of_weights_is_not_the_same_graph(calls: list[int]) -> None:
    layer, x, weight = FairGCNConv(2, 3), torch.rand(4, 2), torch.ones(8)
    weight[:2] = 5.0
    train(layer, x, TRIANGLE, weight)
    weight.numpy()[:] = weight.numpy()[::-1].copy()
    train(layer, x, TRIANGLE, weight)
    assert len(calls) == 2
    assert len(module._cache) >= 1


def test_what_was_known_of_changed_numbers_is_forgotten() -> None:
    module._cache.clear()
    layer, x, edges, weight = FairGCNConv(2, 3), torch.rand(4, 2), TRIANGLE.clone(), torch.ones(8)
    for step in range(5):
        weight.fill_(step + 1)
        train(layer, x, edges, weight)
    assert len(module._cache) == 1


def test_answers_for_one_graph_share_the_copy_of_it() -> None:
    """As those of a GINConv, whose eps is learned."""
    module._cache.clear()
    layer, edges = FairGINConv(nn.Linear(2, 2), train_eps=True), TRIANGLE.clone()
    for step in range(4):
        nn.init.constant_(layer.eps, step / 10)
        train(layer, torch.rand(4, 2), edges)
    (graph,) = module._cache
    assert len(graph.forms) == 4


def test_tensors_of_inference_mode_are_remembered_too(calls: list[int]) -> None:
    layer, x = FairGCNConv(2, 3), torch.rand(4, 2)
    with torch.inference_mode():
        edges = TRIANGLE.clone()
    for _ in range(3):
        train(layer, x, edges)
    assert len(calls) == 1


def test_what_is_remembered_does_not_outlive_many_graphs(calls: list[int]) -> None:
    layer, x = FairGCNConv(2, 3), torch.rand(4, 2)
    module._cache.clear()
    for _ in range(20):
        train(layer, x, TRIANGLE.clone())
    assert len(module._cache) <= 1  # the graphs are gone, and what was known of them


@settings(max_examples=40, deadline=None)
@given(graph=graphs())
def test_the_graph_may_come_normalised(graph: Data) -> None:
    """Â has the doubly stochastic form of A + I, even where float32 left it not quite symmetric."""
    weight = graph.get("edge_weight")
    weight = None if weight is None else weight.float()
    n = graph.num_nodes
    edges, norm = gcn_norm(graph.edge_index, weight, n, dtype=torch.float32)
    edge, loop, scaling = module.balanced_entries(edges, norm, n, module.Loops(1.0), torch.float64)
    assert scaling.scale is not None
    found = torch.zeros(n, n, dtype=torch.float64).index_put(tuple(edges), edge, accumulate=True)
    expected = balanced(with_loops(adjacency(graph)))
    torch.testing.assert_close(found + loop.diag(), expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_given_weights_stand_for_derived_ones(graph: Data) -> None:
    torch.manual_seed(0)
    x, edges, n = graph.x.to_dense(), graph.edge_index, graph.num_nodes
    scale = rg.balance(edges, graph.edge_weight, num_nodes=n, tol=1e-13).scale
    assert scale is not None
    entries = scale[edges[0]] * scale[edges[1]]
    entries = entries if graph.edge_weight is None else entries * graph.edge_weight
    given = torch.cat([entries, scale**2])
    model = make_fair(GCN(x.shape[1], 4, 2).double())
    derived = train(model, x, edges, edge_weight=graph.edge_weight)
    with fair_weights(model, given):
        torch.testing.assert_close(train(model, x, edges, edge_weight=graph.edge_weight), derived)
    with fair_weights(model, [given, 0 * given]):
        zeroed = train(model, x, edges, edge_weight=graph.edge_weight)
    assert zeroed[3].abs().max() == 0
    layer = FairGCNConv(x.shape[1], 3).double()
    derived = train(layer, x, edges, graph.edge_weight)
    passed = train(layer, x, edges, graph.edge_weight, fair_weight=given)
    torch.testing.assert_close(passed, derived)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("make", [FairSAGEConv, lambda a, b: FairGINConv(nn.Linear(a, b))])
def test_a_sampled_block_takes_the_whole_graphs_entries(make: Any, loops: bool) -> None:
    """Sources 0 to 3, targets 0 and 1, as a loader hands them out: targets first."""
    torch.manual_seed(0)
    edges = torch.tensor([[2, 3, 1, 3], [0, 0, 0, 1]])
    fair = torch.rand(4, dtype=torch.float64)
    loop = torch.rand(2, dtype=torch.float64)
    layer = make(3, 5).double()
    x = torch.rand(4, 3, dtype=torch.float64)
    out = layer((x, x[:2]), edges, fair_weight=torch.cat([fair, loop]) if loops else fair)
    grad = torch.rand_like(out)
    out.backward(grad)
    B = torch.zeros(2, 4, dtype=torch.float64).index_put((edges[1], edges[0]), fair)
    if loops:
        B[[0, 1], [0, 1]] += loop
    weight = layer.lin_l.weight if hasattr(layer, "lin_l") else layer.nn.weight
    torch.testing.assert_close(weight.grad, grad.t() @ B @ x)
    narrow = make(3, 2).double()  # now ∂J/∂E travels rather than H
    out = narrow((x, x[:2]), edges, fair_weight=torch.cat([fair, loop]) if loops else fair)
    grad = torch.rand_like(out)
    out.backward(grad)
    weight = narrow.lin_l.weight if hasattr(narrow, "lin_l") else narrow.nn.weight
    torch.testing.assert_close(weight.grad, grad.t() @ B @ x)


def test_a_block_without_given_weights_is_refused() -> None:
    layer, x = FairSAGEConv(3, 5), torch.rand(4, 3)
    with pytest.raises(RawlsError, match=r"4 source and 2 target nodes.*fair_weight"):
        layer((x, x[:2]), torch.tensor([[2, 3], [0, 1]]))


def test_weights_that_do_not_fit_are_refused() -> None:
    model = make_fair(GraphSAGE(3, 4, 2))
    with (
        fair_weights(model, torch.ones(7)),
        pytest.raises(RawlsError, match="7 entries, but FairSAGEConv got 8 edges and 4 target"),
    ):
        model(torch.rand(4, 3), TRIANGLE)
    with (
        pytest.raises(RawlsError, match="there are 1 fair weights for 2"),
        fair_weights(model, [torch.ones(8)]),
    ):
        pass
    with (
        pytest.raises(RawlsError, match="no fair layers"),
        fair_weights(nn.Linear(2, 2), torch.ones(8)),
    ):
        pass
    assert train(model, torch.rand(4, 3), TRIANGLE)  # nothing is left of what was given


@pytest.mark.parametrize("make", [FairGCNConv, FairGraphConv, lambda a, b: FairSGConv(a, b, K=2)])
@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (torch.ones(7), r"weights of shape \(7,\) for 8 edges"),
        (torch.ones(8, 1), r"weights of shape \(8, 1\) for 8 edges"),
        ([1.0] * 8, "real numbers, not list"),
    ],
)
def test_edge_weights_that_do_not_fit_are_refused(make: Any, weight: Any, said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        make(3, 2)(torch.rand(4, 3), TRIANGLE, weight)


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([1.0] * 8, "not list"),
        (torch.ones(8).long(), r"shape \(8,\) and torch.int64"),
        (torch.ones(8, 1), r"shape \(8, 1\)"),
        (torch.tensor(1.0), r"shape \(\)"),
    ],
)
def test_fair_weights_of_another_kind_are_refused(weight: Any, said: str) -> None:
    with pytest.raises(RawlsError, match=f"fair_weight must be a tensor of floating.*{said}"):
        FairGCNConv(3, 2)(torch.rand(4, 3), TRIANGLE, fair_weight=weight)


def test_fair_weights_refuses_what_is_none() -> None:
    model = make_fair(GCN(3, 4, 2))
    with pytest.raises(RawlsError, match="not NoneType"), fair_weights(model, None):  # type: ignore[arg-type]
        pass
    with pytest.raises(RawlsError, match="not NoneType"), fair_weights(model, [None, None]):  # type: ignore[list-item]
        pass
    with pytest.raises(RawlsError, match="a torch module, not str"), fair_weights("x", None):  # type: ignore[arg-type]
        pass


def test_edges_that_do_not_fit_are_refused() -> None:
    layer, x = FairGCNConv(3, 2), torch.rand(4, 3)
    with pytest.raises(RawlsError, match="and integers"):
        layer(x, TRIANGLE.float())
    with pytest.raises(RawlsError, match="got node 5, but the 4 nodes"):
        layer(x, torch.tensor([[0, 5], [5, 0]]))


def test_an_eps_without_a_form_is_refused() -> None:
    layer = FairGINConv(nn.Linear(2, 2), eps=-1.5)
    with pytest.raises(RawlsError, match="eps of a GINConv must stay above -1"):
        layer(torch.rand(4, 2), TRIANGLE)


def test_the_edges_of_a_star_alone_would_not_be_fair() -> None:
    """Why B keeps its diagonal in layers without self-loops (docs/fair-layers.md)."""
    leaves = torch.arange(1, 101)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([hub, leaves]), torch.cat([leaves, hub])])
    edge, loop, _ = module.balanced_entries(edges, None, 101, module.Loops(1.0), torch.float64)
    sums = torch.zeros(101, dtype=torch.float64).index_add(0, edges[1], edge)
    assert sums[0] > 0.9
    assert sums[1:].max() < 0.1
    torch.testing.assert_close(sums + loop, torch.ones(101, dtype=torch.float64))
