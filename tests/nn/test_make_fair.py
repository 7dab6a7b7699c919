"""make_fair as a conversion: what it takes, what it refuses, and that it changes nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from nn.dense import adjacency, balanced, with_loops
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    GAT,
    GCN,
    GIN,
    MLP,
    ChebConv,
    DenseGCNConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphSAGE,
    HeteroConv,
    LGConv,
    SAGEConv,
    TransformerConv,
    to_hetero,
    to_hetero_with_bases,
)
from torch_geometric.nn.aggr import SumAggregation

from rawlsgcn import RawlsError
from rawlsgcn.nn import FAIR_LAYERS, FairAPPNP, FairGCNConv, FairGINConv, FairSAGEConv, make_fair

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


class Nested(nn.Module):
    """A model whose last layer can be anything."""

    def __init__(self, last: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"deep": nn.ModuleList([GCNConv(3, 3)])})
        self.last = last


class Own(GCNConv):
    """A user's own kind of GCNConv, of which nothing is known."""


@pytest.mark.parametrize("make", [GCN, GraphSAGE, GIN])
def test_models_of_torch_geometric(make: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    model = make(3, 4, 3, 2, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters())
    state, x = {k: v.clone() for k, v in model.state_dict().items()}, torch.rand(4, 3)
    model.eval()
    before = model(x, EDGES)
    assert make_fair(make_fair(model)) is model  # twice is once
    assert torch.equal(model(x, EDGES), before)
    assert model.state_dict().keys() == state.keys()
    make(3, 4, 3, 2).load_state_dict(model.state_dict())  # and back into the plain model
    model.train()
    model(x, EDGES).square().sum().backward()
    optimizer.step()
    changed = [name for name, value in model.state_dict().items() if not value.equal(state[name])]
    learned = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learned <= set(changed) | {n for n in learned if not model.get_parameter(n).grad.any()}


def test_a_single_layer_and_a_shared_one() -> None:
    layer = GCNConv(3, 3)
    model = nn.ModuleList([layer, nn.ModuleList([layer])])
    make_fair(model)
    assert type(layer) is FairGCNConv
    assert model[1][0] is layer
    assert make_fair(SAGEConv(3, 3)).__class__ is FairSAGEConv


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (GAT(3, 4, 2), r"'last\.convs\.0' \(GATConv\).*attention computes its matrix"),
        (GATv2Conv(3, 4), r"'last' \(GATv2Conv\).*attention"),
        (TransformerConv(3, 4), r"'last' \(TransformerConv\).*attention"),
        (ChebConv(3, 4, K=2), r"'last' \(ChebConv\).*negative entries"),
        (Own(3, 4), r"'last' \(Own\).*no fair gradient is known.*GCNConv.*subclasses"),
        (LGConv(), r"'last' \(LGConv\).*no fair gradient is known"),
        (DenseGCNConv(3, 4), r"'last' \(DenseGCNConv\).*no fair gradient is known"),
        (SAGEConv(3, 4, aggr="max"), r"'last' \(SAGEConv\).*aggregation 'max'"),
        (SAGEConv(3, 4, aggr=["mean", "max"]), r"'last' \(SAGEConv\).*aggregation"),
        (GINConv(nn.Linear(3, 4), aggr="mean"), r"'last' \(GINConv\).*use the sum"),
        (SAGEConv(3, 4, project=True), r"'last' \(SAGEConv\).*project"),
        (GINConv(nn.Sequential(nn.ReLU(), nn.Linear(3, 4))), "begins with ReLU, not with"),
        (GINConv(nn.Sequential()), "begins with Sequential, not with"),
        (GINConv(nn.LazyLinear(4)), "LazyLinear without a size"),
    ],
)
def test_refusals_name_the_layer_and_change_nothing(last: nn.Module, said: str) -> None:
    model = Nested(last)
    with pytest.raises(RawlsError, match=said):
        make_fair(model)
    assert type(model.encoder["deep"][0]) is GCNConv


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: FairSAGEConv(3, 4, project=True),
            "FairSAGEConv cannot be made: with project",
        ),
        (lambda: FairSAGEConv(3, 4, aggr="max"), "aggregation 'max'"),
        (lambda: FairGCNConv(3, 4, aggr="max"), "FairGCNConv cannot be made.*aggregation 'max'"),
        (lambda: FairAPPNP(2, 0.1, aggr="min"), "aggregation 'min'"),
        (lambda: FairGINConv(nn.ReLU()), "begins with ReLU"),
        (lambda: FairGINConv(nn.LazyLinear(4)), "LazyLinear without a size"),
    ],
)
def test_constructors_refuse_what_make_fair_refuses(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(RawlsError, match=said):
        make()


@pytest.mark.parametrize("fair", FAIR_LAYERS.items(), ids=lambda pair: pair[1].__name__)
def test_fair_layers_have_their_parents_signature(fair: tuple[type, type]) -> None:
    parameters = [list(inspect.signature(each).parameters) for each in fair]
    assert parameters[0] == parameters[1]


def test_aggregations_are_known_by_what_they_do() -> None:
    torch.manual_seed(0)
    named, given = FairSAGEConv(3, 4, aggr="sum"), make_fair(SAGEConv(3, 4, aggr=SumAggregation()))
    given.load_state_dict(named.state_dict())
    x, gradients = torch.rand(4, 3), []
    for layer in (named, given):
        layer(x, EDGES).square().sum().backward()
        gradients.append(layer.lin_l.weight.grad)
    assert torch.equal(*gradients)


def test_a_lazy_network_that_was_called_knows_its_size() -> None:
    layer = GINConv(nn.LazyLinear(4))
    layer(torch.rand(4, 3), EDGES)
    assert type(make_fair(layer)) is FairGINConv


class Two(nn.Module):
    """Two layers, as the documentation of to_hetero has them."""

    def __init__(self, make: Callable[[Any, int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = make(-1, 4), make(-1, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).tanh(), edge_index)


TYPES = ["user", "item"], [("user", "buys", "item"), ("item", "bought", "user")]
ONE_TYPE = ["big_user"], [("big_user", "knows", "big_user"), ("big_user", "trusts", "big_user")]


def sage(_: int, outputs: int) -> SAGEConv:
    return SAGEConv((-1, -1), outputs)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: to_hetero(Two(sage), TYPES),
            r"'first\.user__buys__item' \(SAGEConv\).*two types of nodes \(user to item\)",
        ),
        (
            lambda: HeteroConv({kind: sage(3, 4) for kind in TYPES[1]}),
            r"\(SAGEConv\) cannot.*two types of nodes \(user to item\).*to_homogeneous",
        ),
        (
            lambda: HeteroConv(
                {("user", "knows", "user"): GCNConv(3, 4), TYPES[1][1]: FairSAGEConv((3, 3), 4)}
            ),
            r"\(FairSAGEConv\) cannot.*two types of nodes \(item to user\)",
        ),
        (
            lambda: to_hetero_with_bases(Two(sage), TYPES, num_bases=2, in_channels={"x": 3}),
            r"'first\.convs\.0' \(SAGEConv\).*hooked into its messages",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*node types.*updated")
def test_relations_between_types_of_nodes_are_refused(make: Callable[[], Any], said: str) -> None:
    model = make()
    kinds = [type(module) for module in model.modules()]
    with pytest.raises(RawlsError, match=said):
        make_fair(model)
    with pytest.raises(RawlsError, match=said.replace("'", r"'encoder\.", 1)):
        make_fair(nn.ModuleDict({"encoder": model}))
    assert [type(module) for module in model.modules()] == kinds


def test_each_relation_of_one_type_of_nodes_is_balanced_by_itself() -> None:
    """The weight of relation r learns from (∂J/∂E)ᵀ B_r X, with B_r of that relation alone."""
    torch.manual_seed(0)
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    edges = {ONE_TYPE[1][0]: EDGES, ONE_TYPE[1][1]: ring}
    x = torch.rand(4, 3, dtype=torch.float64)
    convs = {kind: SAGEConv(3, 2) for kind in edges}
    wrapped = make_fair(HeteroConv(convs).double())
    out = wrapped({"big_user": x}, edges)["big_user"]
    gradient = torch.rand_like(out)
    out.backward(gradient)
    for kind, index in edges.items():
        graph = Data(edge_index=index, num_nodes=4)
        B = balanced(with_loops(adjacency(graph)))
        expected = gradient.t() @ B @ x
        found = wrapped.convs[kind].lin_l.weight.grad
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_a_model_of_one_type_made_by_to_hetero_is_made_fair() -> None:
    model = make_fair(to_hetero(Two(sage), ONE_TYPE))
    edges = dict.fromkeys(ONE_TYPE[1], EDGES)
    model({"big_user": torch.rand(4, 3)}, edges)["big_user"].square().sum().backward()
    fair = [module for module in model.modules() if isinstance(module, FairSAGEConv)]
    assert len(fair) == 4
    assert all(layer.lin_l.weight.grad is not None for layer in fair)


def test_a_model_without_convolutions_is_refused() -> None:
    with pytest.raises(RawlsError, match="takes a torch module, not str"):
        make_fair("x")  # type: ignore[type-var]
    with pytest.raises(RawlsError, match="nothing in the model would become fair"):
        make_fair(nn.ModuleList([nn.Linear(3, 3), APPNP(2, 0.1)]), weightless="plain")
    with pytest.raises(RawlsError, match="no graph convolution"):
        make_fair(MLP([3, 4, 2]))


def test_propagation_without_weights_is_asked_about_where_it_is_ambiguous() -> None:
    with pytest.raises(RawlsError, match=r"'last' \(APPNP\) has no weights.*weightless='fair'"):
        make_fair(Nested(APPNP(2, 0.1)))
    with pytest.raises(RawlsError, match="weightless is 'fair' or 'plain', not 'yes'"):
        make_fair(Nested(APPNP(2, 0.1)), weightless="yes")  # type: ignore[arg-type]
    assert type(make_fair(Nested(APPNP(2, 0.1)), weightless="fair").last) is FairAPPNP
    left = make_fair(Nested(APPNP(2, 0.1)), weightless="plain")
    assert type(left.last) is APPNP
    assert type(left.encoder["deep"][0]) is FairGCNConv


def test_the_layers_after_the_first_of_a_network_are_left_alone() -> None:
    """Outside its convolution the network's first layer is an ordinary one."""
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    make_fair(GINConv(network))
    x = torch.rand(5, 3)

    def gradient() -> Tensor:
        network.zero_grad()
        network(x).sum().backward()
        return network[0].weight.grad.clone()

    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    plain.load_state_dict(network.state_dict())
    plain(x).sum().backward()
    assert torch.equal(gradient(), plain[0].weight.grad)


def test_a_linear_layer_that_replaces_a_layers_own_learns_by_the_fair_gradient() -> None:
    torch.manual_seed(0)
    layer, x, grad = FairGCNConv(3, 2), torch.rand(4, 3), torch.rand(4, 2)
    layer.lin = nn.Linear(3, 2, bias=False)
    layer(x, EDGES).backward(grad)
    B = balanced(with_loops(adjacency(Data(edge_index=EDGES, num_nodes=4)))).float()
    torch.testing.assert_close(layer.lin.weight.grad, grad.t() @ B @ x)


def test_a_parametrized_weight_learns_by_the_fair_gradient() -> None:
    torch.manual_seed(0)
    layer, fair = GCNConv(3, 2), FairGCNConv(3, 2)
    fair.lin.weight.data = layer.lin.weight.detach().clone()
    nn.utils.parametrize.register_parametrization(layer.lin, "weight", nn.Identity())
    x, grad = torch.rand(4, 3), torch.rand(4, 2)
    for each in (make_fair(layer), fair):
        each(x, EDGES).backward(grad)
    original = layer.lin.parametrizations.weight.original
    torch.testing.assert_close(original.grad, fair.lin.weight.grad)
