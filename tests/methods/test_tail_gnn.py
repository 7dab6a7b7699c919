"""Tail-GNN against its formulas, node by node in float64, and its forged graph and turns."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch import Tensor
from torch.nn.functional import cross_entropy, elu, leaky_relu
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import Inputs, tail_gnn
from rawlsgcn.methods.tail_gnn import Branch, TailGNN, TailLayer, TailLearner, TailSettings, forged

QUIET = TailSettings(dropout=0.0, hidden_channels=3, tail_degree=2)


def branch_of(inputs: Inputs, tail: bool) -> Branch:
    weight = inputs.edge_weight
    weight = torch.ones(inputs.edge_index.shape[1]) if weight is None else weight
    return Branch(*inputs.edge_index, weight.double(), inputs.num_nodes, tail)


def plain_map(square: tail_gnn.SquareMap, x: Tensor) -> Tensor:
    for factor in square.factors:
        x = factor.t() @ x
    return x


def plain_layer(layer: TailLayer, branch: Branch, x: Tensor, tail: bool) -> tuple[Tensor, Tensor]:
    """The layer and the missing information of every node, from the formulas, node by node."""
    outputs, missing = [], []
    for i in range(branch.nodes):
        mine = branch.row == i
        weight, near = branch.weight[mine], x[branch.column[mine]]
        degree = weight.sum()
        total = (weight[:, None] * near).sum(0)
        mean = total / degree if mine.any() else torch.zeros_like(x[i])
        gamma = leaky_relu(plain_map(layer.g1, x[i]) + plain_map(layer.g2, mean), 0.2) + 1
        beta = leaky_relu(plain_map(layer.b1, x[i]) + plain_map(layer.b2, mean), 0.2)
        m = x[i] + gamma * layer.r + beta - mean
        mixed = layer.weight.t() @ (x[i] + total)
        if tail:
            outputs.append((mixed + layer.bias + layer.weight.t() @ m) / (degree + 2))
        else:
            outputs.append(mixed / (degree + 1) + layer.bias)
        missing.append(m)
    return torch.stack(outputs), torch.stack(missing)


def plain_network(learner: TailLearner, branch: Branch, tail: bool) -> tuple[Tensor, list[Tensor]]:
    """The class scores of every node, without dropout, and every layer's missing information."""
    h, missing = learner.inputs.x.to_dense(), []
    for index, layer in enumerate(learner.module.layers):
        h, m = plain_layer(layer, branch, elu(h) if index else h, tail)
        missing.append(m)
    return h, missing


def learner_of(graph: Data, chosen: TailSettings = QUIET, seed: int = 0) -> TailLearner:
    return TailGNN().learner(Inputs.of(graph, dtype=torch.float64), chosen, seed)


def gradients(loss: Tensor, module: torch.nn.Module) -> list[Tensor | None]:
    return list(torch.autograd.grad(loss, list(module.parameters()), allow_unused=True))


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), tail=st.booleans(), wide=st.booleans(), data=st.data())
def test_layer_equals_the_formula_node_by_node(
    graph: Data, tail: bool, wide: bool, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if wide:  # every map through the bottleneck
            patch.setattr(tail_gnn, "WIDE", 0)
        inputs = Inputs.of(graph, dtype=torch.float64)
        layer = TailLayer(inputs.num_features, 3).double()
        for parameter in layer.parameters():
            parameter.data = torch.randn(
                parameter.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
            )
    branch = branch_of(inputs, tail)
    everything = torch.arange(inputs.num_nodes)
    some = torch.tensor(sorted(data.draw(st.sets(st.sampled_from(range(inputs.num_nodes))))))
    some = some.long()
    hop = branch.hop(some, everything, some)
    expected, m = plain_layer(layer, branch, inputs.x.to_dense(), tail)
    weight = torch.randn_like(expected[some])
    wanted = gradients((expected[some] * weight).sum() + m[some].square().sum(), layer)
    for view in (hop.features(inputs.x), hop.view(inputs.x.to_dense())):
        out = layer(view, tail)
        torch.testing.assert_close(out, expected[some])
        torch.testing.assert_close(layer.missing(view), m[some])
        found = gradients((out * weight).sum() + layer.missing(view).square().sum(), layer)
        for ours, theirs in zip(found, wanted, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3))
def test_model_turn_has_the_loss_and_the_gradients_of_the_formulas(
    graph: Data, layers: int
) -> None:
    """Everything on every node, by the book, against what is computed on the rows needed."""
    learner = learner_of(graph, replace(QUIET, num_layers=layers, adversary=0.3, missing=0.7))
    learner.module.eval()  # no dropout in the discriminator
    train, y = learner.inputs.train, learner.inputs.y
    head, missing = plain_network(learner, learner.head, tail=False)
    tail, _ = plain_network(learner, learner.forged, tail=True)
    d = learner.module.discriminator
    p = torch.sigmoid(elu(elu(tail[train]) @ d.weight + d.bias) @ d.out)
    expected = (cross_entropy(head[train], y[train]) + cross_entropy(tail[train], y[train])) / 2
    expected = expected + 0.3 * torch.log(1 - p).mean()
    for m in missing:
        expected = expected + 0.7 * sum(m[i].square().sum().sqrt() for i in train) / len(train)
    wanted = gradients(expected, learner.module.layers)

    loss = learner.model_turn([learner.module.first(plan) for plan in learner.training[1]])
    assert loss == pytest.approx(expected.item())
    for parameter, gradient in zip(learner.module.layers.parameters(), wanted, strict=True):
        if gradient is None:
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-7, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), layers=st.integers(1, 3), block=st.sampled_from([1, 7, 2**24]))
def test_every_node_is_read_by_the_branch_of_its_degree(
    graph: Data, layers: int, block: int
) -> None:
    learner = learner_of(graph, replace(QUIET, num_layers=layers))
    head, _ = plain_network(learner, learner.head, tail=False)
    tail, _ = plain_network(learner, learner.tail, tail=True)
    expected = torch.where((learner.inputs.degree > 2)[:, None], head, tail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail_gnn, "BLOCK_ENTRIES", block)
        torch.testing.assert_close(learner.logits(), expected.detach())
        right = expected.argmax(1) == learner.inputs.y
        if len(learner.inputs.val):
            score = right[learner.inputs.val].double().mean().item()
            assert learner.validation_score() == pytest.approx(score)


@settings(max_examples=60, deadline=None)
@given(graph=graphs(max_nodes=20), k=st.integers(1, 5), seed=st.integers(0, 99))
def test_only_training_nodes_of_high_degree_lose_neighbors(graph: Data, k: int, seed: int) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    whole = branch_of(inputs, tail=True)
    tail = forged(whole, inputs.train, k, torch.Generator().manual_seed(seed))
    before, after = (torch.bincount(b.row, minlength=whole.nodes) for b in (whole, tail))
    loses = torch.zeros(whole.nodes, dtype=torch.bool)
    loses[inputs.train] = True
    loses &= before >= k
    assert torch.equal(after[~loses], before[~loses])
    assert ((after[loses] >= 1) & (after[loses] <= k)).all()
    edges = dict(zip(zip(*inputs.edge_index.tolist(), strict=True), whole.weight, strict=True))
    kept = list(zip(tail.row.tolist(), tail.column.tolist(), strict=True))
    assert len(set(kept)) == len(kept)
    assert all(edges[pair] == w for pair, w in zip(kept, tail.weight, strict=True))


def test_a_forged_node_keeps_every_number_and_every_neighbor_equally_often() -> None:
    star = torch.tensor([[0] * 8 + list(range(1, 9)), [*range(1, 9)] + [0] * 8])
    branch = Branch(*star, torch.ones(16), 9, tail=True)
    generator = torch.Generator().manual_seed(0)
    numbers, neighbors = torch.zeros(6), torch.zeros(9)
    for _ in range(2000):
        tail = forged(branch, torch.tensor([0]), 5, generator)
        kept = tail.column[tail.row == 0]
        numbers[len(kept)] += 1
        neighbors[kept] += 1
    assert numbers[0] == 0
    assert (numbers[1:] - 400).abs().max() < 80
    assert (neighbors[1:] - 750).abs().max() < 100


def big_graph(nodes: int = 60, features: int = 12, classes: int = 3) -> Data:
    generator = torch.Generator().manual_seed(3)
    upper = torch.triu(torch.rand(nodes, nodes, generator=generator) < 0.15, 1)
    edge_index = (upper | upper.t()).nonzero().t().contiguous()
    x = torch.rand(nodes, features, generator=generator)
    y = torch.randint(0, classes, (nodes,), generator=generator)
    mask = torch.arange(nodes) < 30
    return Data(x=x, y=y, edge_index=edge_index, train_mask=mask, val_mask=~mask, test_mask=~mask)


def test_a_turn_changes_only_its_own_side() -> None:
    learner = learner_of(big_graph(), replace(QUIET, dropout=0.5))
    learner.module.train()
    first = [learner.module.first(plan) for plan in learner.training[1]]
    before = copy.deepcopy(learner.module)
    learner.discriminator_turn(first)
    assert all(p.grad is None for p in learner.module.layers.parameters())
    pairs = zip(learner.module.layers.parameters(), before.layers.parameters(), strict=True)
    assert all(torch.equal(now, then) for now, then in pairs)
    sides = learner.module.discriminator.parameters(), before.discriminator.parameters()
    assert not any(torch.equal(now, then) for now, then in zip(*sides, strict=True))
    before = copy.deepcopy(learner.module)
    learner.model_turn(first)
    sides = learner.module.discriminator.parameters(), before.discriminator.parameters()
    assert all(torch.equal(now, then) for now, then in zip(*sides, strict=True))
    assert not torch.equal(learner.module.layers[0].weight, before.layers[0].weight)


def test_gradients_of_the_model_turn_do_not_reach_the_discriminators_next_turn() -> None:
    one, other = (learner_of(big_graph(), replace(QUIET, lr=1e-12)) for _ in range(2))
    for learner in (one, other):
        learner.module.eval()
    first = [[run.module.first(plan) for plan in run.training[1]] for run in (one, other)]
    one.model_turn(first[0])
    one.discriminator_turn([part.detach() for part in first[0]])
    other.discriminator_turn(first[1])
    pairs = zip(*(run.module.discriminator.parameters() for run in (one, other)), strict=True)
    for mine, yours in pairs:
        torch.testing.assert_close(mine.grad, yours.grad, rtol=1e-6, atol=1e-9)


def test_parameters_add_up() -> None:
    d, h, c = 12, 7, 3
    learner = learner_of(big_graph(features=d, classes=c), replace(QUIET, hidden_channels=h))
    count = (4 * d**2 + d) + (d**2 + d) + (d * h + h)
    count += (4 * h**2 + h) + (h**2 + h) + (h * c + c) + (c**2 + c + c)
    assert sum(p.numel() for p in learner.module.parameters()) == count


def test_more_than_a_thousand_features_pass_through_a_bottleneck() -> None:
    d, h = 1001, 4
    maps = sum(p.numel() for p in TailLayer(d, h).parameters()) - (d * h + h + d + d)
    assert maps == 5 * 2 * 64 * d
    maps = sum(p.numel() for p in TailLayer(1000, h).parameters()) - (1000 * h + h + 2000)
    assert maps == 5 * 1000**2


@pytest.mark.parametrize("layers", [1, 2])
def test_same_seed_same_numbers_and_another_seed_others(layers: int) -> None:
    graph, logits = big_graph(), []
    for seed in (4, 4, 5):
        learner = learner_of(graph, replace(QUIET, dropout=0.5, num_layers=layers), seed)
        losses = [learner.epoch() for _ in range(4)]
        logits.append((losses, learner.logits()))
    assert logits[0][0] == logits[1][0]
    assert torch.equal(logits[0][1], logits[1][1])
    assert not torch.equal(logits[0][1], logits[2][1])


def test_without_validation_nodes_there_is_no_score() -> None:
    graph = big_graph()
    graph.val_mask = torch.zeros_like(graph.train_mask)
    assert math.isnan(learner_of(graph).validation_score())


def test_weights_read_another_graph() -> None:
    trained, other = learner_of(big_graph()), big_graph(nodes=40)
    del other.y, other.train_mask, other.val_mask, other.test_mask
    inputs = Inputs.of(other, dtype=torch.float64, num_classes=3)
    learner = TailGNN().restore(inputs, QUIET, trained.module.state_dict())
    assert learner.logits().shape == (40, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tail_degree": 0}, "tail_degree must be at least 1"),
        ({"adversary": -1.0}, "adversary must be"),
        ({"missing": -1.0}, "missing must be"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, float], words: str) -> None:
    with pytest.raises(RawlsError, match=words):
        replace(QUIET, **change)


def test_defaults_are_the_published_ones() -> None:
    d = TailGNN.defaults
    assert (d.lr, d.epochs, d.patience, d.weight_decay, d.dropout) == (0.01, 1000, 200, 1e-4, 0.5)
    assert (d.tail_degree, d.adversary, d.missing, d.hidden_channels, d.num_layers) == (
        5,
        0.1,
        0.001,
        64,
        2,
    )
    with pytest.raises(RawlsError, match="has no normalization 'row'"):
        TailGNN().configure({"normalization": "row"})
