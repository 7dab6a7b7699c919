"""DEMO-Net against its formula written out node by node, in float64, gradients too."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch import Tensor, nn
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import Inputs, Learner, find_method, with_changes
from rawlsgcn.methods.demo_net import nearest
from rawlsgcn.training import Job
from rawlsgcn.training.reference import train_reference

METHOD = find_method("demo-net")


def small(**changes: object) -> object:
    return with_changes(METHOD.defaults, {"hidden_channels": 3, "dropout": 0.0, **changes})


def slow_logits(
    graph: Data, x: Tensor, parameters: dict[str, Tensor], degrees: list[int], layers: int
) -> Tensor:
    """E_i = b + W_self x_i + mean over N(i) of (W_global + W_deg(i)) x_j, one node at a time."""
    h = x
    for index in range(layers):
        own, common, by_degree, bias = (
            parameters[f"layers.{index}.{name}"] for name in ("own", "common", "by_degree", "bias")
        )
        h = nn.functional.elu(h) if index else h
        rows = []
        for node in range(graph.num_nodes):
            edges = (graph.edge_index[0] == node).nonzero().view(-1).tolist()
            if not edges:
                rows.append(bias + h[node] @ own + h[node] @ common)
                continue
            weight = graph.get("edge_weight")
            weights = [1.0 if weight is None else float(weight[edge]) for edge in edges]
            closest = min(range(len(degrees)), key=lambda k: abs(degrees[k] - len(edges)))
            both = common + by_degree[closest]
            terms = [
                w * (h[graph.edge_index[1, edge]] @ both)
                for w, edge in zip(weights, edges, strict=True)
            ]
            rows.append(bias + h[node] @ own + sum(terms) / sum(weights))
        h = torch.stack(rows)
    return h


def copies(learner: Learner) -> dict[str, Tensor]:
    named = learner.module.named_parameters()
    return {name: value.detach().clone().requires_grad_() for name, value in named}


@settings(max_examples=50, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3))
def test_scores_loss_and_gradients_equal_the_formula(graph: Data, layers: int) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    learner = METHOD.learner(inputs, small(num_layers=layers), seed=1)
    parameters = copies(learner)
    degrees = sorted(set(inputs.degree.tolist()) - {0})
    expected = slow_logits(graph, inputs.x.to_dense(), parameters, degrees, layers)
    torch.testing.assert_close(learner.logits(), expected.detach())
    loss = nn.functional.cross_entropy(expected[graph.train_mask], graph.y[graph.train_mask])
    loss.backward()
    assert learner.epoch() == pytest.approx(loss.item(), rel=1e-10)
    for name, parameter in learner.module.named_parameters():
        wanted = parameters[name].grad
        wanted = torch.zeros_like(parameter) if wanted is None else wanted
        torch.testing.assert_close(parameter.grad, wanted, rtol=1e-8, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), other=graphs(), layers=st.integers(1, 2))
def test_another_graph_uses_the_nearest_degree_that_training_met(
    graph: Data, other: Data, layers: int
) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    other.x = other.x.to_dense().double()[:, :1].repeat(1, inputs.num_features)
    other_inputs = Inputs.of(other, dtype=torch.float64, num_classes=inputs.num_classes)
    trained = METHOD.learner(inputs, small(num_layers=layers), seed=1)
    learner = METHOD.restore(other_inputs, small(num_layers=layers), trained.module.state_dict())
    degrees = sorted(set(inputs.degree.tolist()) - {0})
    expected = slow_logits(other, other_inputs.x, copies(trained), degrees, layers)
    torch.testing.assert_close(learner.logits(), expected.detach())


def test_nearest_takes_the_lower_of_two() -> None:
    found = nearest(torch.tensor([1, 3, 10]), torch.tensor([0, 1, 2, 3, 6, 7, 99]))
    assert found.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert nearest(torch.tensor([], dtype=torch.int64), torch.tensor([0, 4])).tolist() == [-1, -1]


@settings(max_examples=30, deadline=None)
@given(graph=graphs(), hidden=st.integers(1, 5))
def test_parameters_are_counted_by_the_papers_formula(graph: Data, hidden: int) -> None:
    inputs = Inputs.of(graph)
    learner = METHOD.learner(inputs, small(hidden_channels=hidden), seed=0)
    distinct = len(set(inputs.degree.tolist()) - {0})
    weights = inputs.num_features * hidden + hidden * inputs.num_classes
    expected = (distinct + 2) * weights + hidden + inputs.num_classes
    assert sum(parameter.numel() for parameter in learner.module.parameters()) == expected


def ring(nodes: int = 12) -> Data:
    """A ring with a few chords and an isolated node."""
    ends = [(i, (i + 1) % (nodes - 1)) for i in range(nodes - 1)] + [(0, 4), (0, 6), (2, 7)]
    row, column = torch.tensor(ends).t()
    edge_index = torch.stack([torch.cat([row, column]), torch.cat([column, row])])
    mask = torch.ones(nodes, dtype=torch.bool)
    x = torch.rand(nodes, 5, generator=torch.Generator().manual_seed(0))
    y = torch.arange(nodes) % 3
    masks = {"train_mask": mask, "val_mask": mask, "test_mask": mask}
    return Data(x=x, y=y, edge_index=edge_index, num_nodes=nodes, **masks)


def test_dropout_is_on_both_terms_separately() -> None:
    """A score is the bias and each of the two terms, or not, grown by 1 / (1 - p)."""
    inputs = Inputs.of(ring(), dtype=torch.float64)
    learner = METHOD.learner(inputs, small(num_layers=1, dropout=0.6), seed=0)
    (layer,) = learner.module.layers
    own = inputs.x @ layer.own
    around = learner.logits() - own - layer.bias
    order, arguments = learner.training
    learner.module.train()
    draws = torch.stack([learner.scores(arguments) - layer.bias for _ in range(400)]) * 0.4
    options = torch.stack([0 * own, own, around, own + around])[:, None, order]
    distance, which = (draws - options).abs().min(0)
    assert distance.max() < 1e-9
    shares = torch.bincount(which.view(-1), minlength=4) / which.numel()
    expected = torch.tensor([0.36, 0.24, 0.24, 0.16])
    assert (shares - expected).abs().max() < 0.02


@pytest.mark.parametrize("sparse", [False, True])
def test_same_seed_same_numbers_and_the_best_weights_come_back(sparse: bool) -> None:
    graph = ring()
    graph.x = graph.x.to_sparse_csr() if sparse else graph.x
    inputs = Inputs.of(graph)
    jobs = [Job(small(epochs=40, patience=10, dropout=0.6, lr=0.05), seed) for seed in (3, 3, 4)]
    first, second, third = (learner.logits() for learner in train_reference(METHOD, inputs, jobs))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_validation_looks_at_the_validation_nodes_only() -> None:
    graph = ring()
    graph.val_mask = torch.arange(graph.num_nodes) < 5
    inputs = Inputs.of(graph)
    learner = METHOD.learner(inputs, small(), seed=0)
    accuracy = (learner.logits().argmax(1) == graph.y)[:5].float().mean()
    assert learner.validation_score() == pytest.approx(accuracy.item())


def test_a_graph_without_edges_has_no_degree_weights() -> None:
    graph = ring()
    graph.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    for x in (graph.x, graph.x.to_sparse_csr()):
        graph.x = x
        learner = METHOD.learner(Inputs.of(graph), small(), seed=0)
        assert learner.module.degrees.numel() == 0
        assert torch.isfinite(torch.tensor(learner.epoch()))


def test_other_normalizations_are_refused() -> None:
    with pytest.raises(RawlsError, match="demo-net has no normalization 'row'"):
        METHOD.configure({"normalization": "row"})
