"""AdvFair against its formulas, dense and in float64, and the two players' turns."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import dense_form, graphs
from torch import Tensor
from torch.nn.functional import cross_entropy, leaky_relu
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import Inputs
from rawlsgcn.methods.advfair import AdvFair, AdvFairLearner, AdvFairSettings

QUIET = AdvFairSettings(dropout=0.0, hidden_channels=4)


def learner_of(graph: Data, chosen: AdvFairSettings = QUIET, seed: int = 0) -> AdvFairLearner:
    return AdvFair().learner(Inputs.of(graph, dtype=torch.float64), chosen, seed)


def perceptron(part: torch.nn.Sequential, h: Tensor) -> Tensor:
    first, _, second = part
    return leaky_relu(h @ first.weight.t() + first.bias) @ second.weight.t() + second.bias


def plain_embedding(learner: AdvFairLearner, graph: Data) -> Tensor:
    """The filtered embedding of every node: ReLU(Â H W + b) in every layer, then the filter."""
    h, laplacian = learner.inputs.x.to_dense(), dense_form(graph, "renormalized")
    for layer in learner.module.convolutions:
        h = torch.relu(laplacian @ h @ layer.weight + layer.bias)
    return perceptron(learner.module.filter, h)


def plain_groups(graph: Data) -> Tensor:
    """Every node's place among the sorted distinct degrees."""
    degree = [int((graph.edge_index[0] == i).sum()) for i in range(graph.num_nodes)]
    places = sorted(set(degree))
    return torch.tensor([places.index(d) for d in degree])


@settings(max_examples=50, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3))
def test_embedding_of_the_rows_needed_equals_the_dense_formula(graph: Data, layers: int) -> None:
    learner = learner_of(graph, replace(QUIET, num_layers=layers))
    module, inputs = learner.module, learner.inputs
    whole = plain_embedding(learner, graph)
    weight = torch.randn_like(whole[inputs.train])
    players = [*module.convolutions.parameters(), *module.filter.parameters()]
    wanted = torch.autograd.grad((whole[inputs.train] * weight).sum(), players)
    found = module(learner.training[1])
    torch.testing.assert_close(found, whole[inputs.train])
    for ours, theirs in zip(
        torch.autograd.grad((found * weight).sum(), players), wanted, strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-10)
    scores = whole @ module.classifier.weight.t() + module.classifier.bias
    torch.testing.assert_close(learner.logits(), scores.detach())
    if len(inputs.val):
        right = (scores.argmax(1) == inputs.y)[inputs.val].double().mean().item()
        assert learner.validation_score() == pytest.approx(right)


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_both_turns_follow_their_own_losses(graph: Data) -> None:
    learner = learner_of(graph, replace(QUIET, adversary=0.4))
    module, train, y = learner.module, learner.inputs.train, learner.inputs.y
    groups = plain_groups(graph)[train]
    embedding = plain_embedding(learner, graph)[train]
    guess = cross_entropy(perceptron(module.discriminator, embedding.detach()), groups)
    wanted = torch.autograd.grad(guess, list(module.discriminator.parameters()))
    learner.discriminator_turn(module(learner.training[1]))
    for parameter, gradient in zip(module.discriminator.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-7, atol=1e-10)

    task = cross_entropy(
        embedding @ module.classifier.weight.t() + module.classifier.bias, y[train]
    )
    loss = task - 0.4 * cross_entropy(perceptron(module.discriminator, embedding), groups)
    model = [p for n, p in module.named_parameters() if not n.startswith("discriminator")]
    wanted = torch.autograd.grad(loss, model)
    assert learner.model_turn(module(learner.training[1])) == pytest.approx(loss.item())
    for parameter, gradient in zip(model, wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-7, atol=1e-10)


def big_graph(nodes: int = 60, features: int = 12, classes: int = 3) -> Data:
    generator = torch.Generator().manual_seed(3)
    upper = torch.triu(torch.rand(nodes, nodes, generator=generator) < 0.15, 1)
    edge_index = (upper | upper.t()).nonzero().t().contiguous()
    x = torch.rand(nodes, features, generator=generator)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    mask = torch.arange(nodes) < 30
    return Data(x=x, y=y, edge_index=edge_index, train_mask=mask, val_mask=~mask, test_mask=~mask)


def changed(now: torch.nn.Module, then: torch.nn.Module) -> set[str]:
    """The parts of the network whose weights differ."""
    before = dict(then.named_parameters())
    return {
        name.split(".")[0]
        for name, parameter in now.named_parameters()
        if not torch.equal(parameter, before[name])
    }


def test_a_turn_changes_only_its_own_side() -> None:
    learner = learner_of(big_graph())
    module = learner.module.train()
    embedding = module(learner.training[1])
    before = copy.deepcopy(module)
    learner.discriminator_turn(embedding)
    assert changed(module, before) == {"discriminator"}
    sides = {n: p.grad for n, p in module.named_parameters() if not n.startswith("discriminator")}
    assert all(gradient is None for gradient in sides.values())
    before = copy.deepcopy(module)
    learner.model_turn(embedding)
    assert changed(module, before) == {"convolutions", "filter", "classifier"}


def test_gradients_of_the_model_turn_do_not_reach_the_discriminators_next_turn() -> None:
    one, other = (learner_of(big_graph(), replace(QUIET, lr=1e-12)) for _ in range(2))
    one.model_turn(one.module(one.training[1]))
    for learner in (one, other):
        learner.discriminator_turn(learner.module(learner.training[1]))
    for mine, yours in zip(
        *(run.module.discriminator.parameters() for run in (one, other)), strict=True
    ):
        torch.testing.assert_close(mine.grad, yours.grad, rtol=1e-6, atol=1e-9)


def test_parameters_add_up() -> None:
    d, h, c = 12, 8, 3
    graph = big_graph(features=d, classes=c)
    groups = int(plain_groups(graph).max()) + 1
    learner = learner_of(graph, replace(QUIET, hidden_channels=h))
    count = (d * h + h) + (h * h + h) + (h * 2 * h + 2 * h) + (2 * h * h + h)
    count += (h * h + h) + (h * groups + groups) + (h * c + c)
    assert sum(p.numel() for p in learner.module.parameters()) == count


def test_same_seed_same_numbers_and_another_seed_others() -> None:
    graph, runs = big_graph(), []
    for seed in (4, 4, 5):
        learner = learner_of(graph, replace(QUIET, dropout=0.5), seed)
        runs.append(([learner.epoch() for _ in range(4)], learner.logits()))
    assert runs[0][0] == runs[1][0]
    assert torch.equal(runs[0][1], runs[1][1])
    assert not torch.equal(runs[0][1], runs[2][1])


def test_without_validation_nodes_there_is_no_score() -> None:
    graph = big_graph()
    graph.val_mask = torch.zeros_like(graph.train_mask)
    assert math.isnan(learner_of(graph).validation_score())


def test_weights_read_a_graph_of_other_degrees() -> None:
    trained, other = learner_of(big_graph()), big_graph(nodes=5)
    del other.y, other.train_mask, other.val_mask, other.test_mask
    inputs = Inputs.of(other, dtype=torch.float64, num_classes=3)
    learner = AdvFair().restore(inputs, QUIET, trained.module.state_dict())
    assert learner.logits().shape == (5, 3)


def test_defaults_are_the_papers() -> None:
    d = AdvFair.defaults
    assert (d.lr, d.epochs, d.patience, d.weight_decay) == (0.01, 1000, 200, 5e-4)
    assert (d.adversary, d.hidden_channels, d.num_layers, d.dropout) == (0.1, 64, 2, 0.5)
    with pytest.raises(RawlsError, match="adversary must be"):
        replace(d, adversary=-0.1)
    with pytest.raises(RawlsError, match="has no normalization 'row'"):
        AdvFair().configure({"normalization": "row"})
