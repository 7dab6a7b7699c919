"""REDRESS: the ranking's gradient by its formula, the GCN it is without, the lists it improves."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs
from torch import Tensor

import rawlsgcn as rg
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs, find_method, with_changes
from rawlsgcn.methods.redress import (
    FeatureLists,
    RedressLearner,
    feature_cosines,
    output_lists,
    ranking_loss,
)

Rows = list[list[float]]


def cosine(a: list[float], b: list[float]) -> float:
    sizes = math.hypot(*a) * math.hypot(*b)
    return sum(p * q for p, q in zip(a, b, strict=True)) / sizes if sizes else 0.0


def cosine_gradient(a: list[float], b: list[float]) -> list[float]:
    """∂cos(a, b)/∂a = b / (|a| |b|) - cos(a, b) a / |a|²."""
    one, other, c = math.hypot(*a), math.hypot(*b), cosine(a, b)
    return [q / (one * other) - c * p / one**2 for p, q in zip(a, b, strict=True)]


def plain_gradient(x: Rows, e: Rows, lists: list[list[int]], k: int, sigma: float) -> Rows:
    """∂R/∂E pair by pair, as the module's docstring writes it."""
    gradient = [[0.0] * len(row) for row in e]
    for i, chosen in enumerate(lists):
        s = {j: 5 * (cosine(x[i], x[j]) + 1) for j in range(len(x)) if j != i}
        t = {j: 5 * (cosine(e[i], e[j]) + 1) for j in range(len(x)) if j != i}
        ranked = sorted(s.values(), reverse=True)[:k]
        ideal = sum((2**value - 1) / math.log2(r + 2) for r, value in enumerate(ranked))
        for r_j, j in enumerate(chosen):
            for r_m, m in enumerate(chosen):
                if s[j] <= s[m] + 1e-12:  # equal features may differ by a rounding
                    continue
                gains = abs(2 ** s[j] - 2 ** s[m])
                discounts = abs(1 / math.log2(r_j + 2) - 1 / math.log2(r_m + 2))
                pull = -sigma / (1 + math.exp(sigma * (t[j] - t[m]))) * gains * discounts / ideal
                for node, sign in ((j, 1), (m, -1)):
                    own, other = cosine_gradient(e[i], e[node]), cosine_gradient(e[node], e[i])
                    for c in range(len(e[i])):
                        gradient[i][c] += sign * pull * 5 * own[c]
                        gradient[node][c] += sign * pull * 5 * other[c]
    return gradient


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor, int, float]:
    """Features with zero rows and ties, outputs with ties, k and σ."""
    n, features, classes = (
        draw(st.integers(2, 12)),
        draw(st.integers(1, 5)),
        draw(st.integers(2, 4)),
    )
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = (n, features)
    x = (torch.rand(shape, generator=random) < 0.5) * torch.rand(shape, generator=random)
    e = torch.randn(n, classes, generator=random)
    if draw(st.booleans()):  # nodes that are alike in everything
        x[n // 2 :] = x[: n - n // 2].clone()
        e[n // 2 :] = e[: n - n // 2].clone()
    sigma = draw(st.sampled_from([0.5, 1.0, 2.0]))
    return x.double(), e.double(), draw(st.sampled_from([1, 3, 10])), sigma


@given(cases(), st.booleans())
@settings(deadline=None, max_examples=80)
def test_the_gradient_is_the_formulas(case: tuple, sparse: bool) -> None:
    x, e, k, sigma = case
    features = FeatureLists.of(x.to_sparse_csr() if sparse else x, k)
    units = e / e.norm(dim=1, keepdim=True)
    lists = output_lists(units, features.k)

    e.requires_grad_()
    (gradient,) = torch.autograd.grad(ranking_loss(e, features, sigma), e)
    plain = plain_gradient(x.tolist(), e.tolist(), lists.tolist(), k, sigma)
    torch.testing.assert_close(gradient, torch.tensor(plain, dtype=e.dtype), rtol=1e-9, atol=1e-10)


@given(cases())
@settings(deadline=None, max_examples=40)
def test_a_list_holds_the_most_similar_others_nearest_first(case: tuple) -> None:
    _, e, k, _ = case
    units = e / e.norm(dim=1, keepdim=True)
    lists = output_lists(units, min(k, len(e) - 1))
    for i, chosen in enumerate(lists.tolist()):
        everyone = [cosine(e[i].tolist(), e[j].tolist()) for j in range(len(e)) if j != i]
        found = [cosine(e[i].tolist(), e[j].tolist()) for j in chosen]
        assert i not in chosen
        assert len(set(chosen)) == len(chosen) == min(k, len(e) - 1)
        assert found == pytest.approx(sorted(everyone, reverse=True)[:k], abs=1e-12)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_row_of_zeros_is_like_nobody(sparse: bool) -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0], [-6.0, -8.0], [0.0, 0.0]])
    found = feature_cosines(x.to_sparse_csr() if sparse else x)
    expected = torch.zeros(4, 4)
    expected[1:3, 1:3] = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    torch.testing.assert_close(found, expected)


def test_outputs_of_zero_have_a_finite_gradient() -> None:
    e = torch.zeros(6, 3, requires_grad=True)
    features = FeatureLists.of(torch.eye(6)[:, :4] + 0.1, 10)
    (gradient,) = torch.autograd.grad(ranking_loss(e, features, 1.0), e)
    assert gradient.isfinite().all()


@given(graphs(), st.sampled_from([0.0, 0.1]))
@settings(deadline=None, max_examples=25)
def test_the_weights_get_the_gradient_of_task_and_ranking(graph, alpha: float) -> None:
    """Finite differences of the whole loss, lists and |ΔNDCG| held where they were."""
    method, inputs = find_method("redress"), Inputs.of(graph, dtype=torch.float64)
    own = with_changes(
        method.defaults, {"alpha": alpha, "dropout": 0, "hidden_channels": 5, "k": 4}
    )
    learner = method.learner(inputs, own, seed=1)
    assert isinstance(learner, RedressLearner)
    parameters = list(learner.module.parameters())
    with torch.no_grad():
        start = [parameter.clone() for parameter in parameters]
    before = learner.logits()[inputs.train]
    units = before / before.norm(dim=1, keepdim=True)
    lists = output_lists(units, learner.features.k)

    def loss() -> float:
        e = learner.module(learner.x, learner.propagation)[inputs.train]
        task = torch.nn.functional.cross_entropy(e, inputs.y[inputs.train]).item()
        s = learner.features.similarity.gather(1, lists).tolist()
        rows, total = e.tolist(), 0.0
        for place in range(len(rows)):
            t = [5 * (cosine(rows[place], rows[j]) + 1) for j in lists[place].tolist()]
            for j in range(len(t)):
                for m in range(len(t)):
                    if s[place][j] > s[place][m]:
                        swap = (2 ** s[place][j] - 2 ** s[place][m]) * abs(
                            1 / math.log2(j + 2) - 1 / math.log2(m + 2)
                        )
                        pull = math.log1p(math.exp(-(t[j] - t[m])))
                        total += swap / learner.features.ideal[place].item() * pull
        return task + alpha * total

    first = loss()
    assert learner.epoch() == pytest.approx(first)
    gradients = [parameter.grad.clone() for parameter in parameters]
    with torch.no_grad():
        for parameter, value in zip(parameters, start, strict=True):
            parameter.copy_(value)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            # the steepest entry, where a kink of ReLU nearby matters least
            where, step = int(gradient.abs().argmax()), 1e-6
            flat = parameter.view(-1)
            middle = float(flat[where])
            sides = []
            for side in (middle + step, middle - step):
                flat[where] = side
                sides.append(loss())
            flat[where] = middle
            slope = (sides[0] - sides[1]) / (2 * step)
            assert slope == pytest.approx(float(gradient.view(-1)[where]), rel=1e-3, abs=1e-6)


@given(graphs())
@settings(deadline=None, max_examples=20)
def test_without_the_ranking_it_is_a_gcn_with_little_weight_decay(graph) -> None:
    inputs = Inputs.of(graph, dtype=torch.float64)
    gcn, redress = find_method("gcn"), find_method("redress")
    plain = gcn.learner(inputs, with_changes(gcn.defaults, {"weight_decay": 5e-6}), seed=3)
    ours = redress.learner(inputs, with_changes(redress.defaults, {"alpha": 0}), seed=3)
    for learner in (plain, ours):
        torch.manual_seed(0)
        for _ in range(5):
            learner.epoch()
    other = plain.module.state_dict()
    for name, value in ours.module.state_dict().items():
        torch.testing.assert_close(value, other[name], rtol=0, atol=1e-12)


def ndcg(logits: Tensor, inputs: Inputs) -> float:
    """Mean NDCG@10 of the training nodes' output lists against their feature lists."""
    features = FeatureLists.of(inputs.x.to_dense()[inputs.train], 10)
    logits = logits[inputs.train]
    units = logits / logits.norm(dim=1, keepdim=True)
    s = features.similarity.gather(1, output_lists(units, 10))
    discount = 1 / torch.log2(torch.arange(10) + 2.0)
    return float((((2**s - 1) * discount).sum(1) / features.ideal).mean())


def test_the_ranking_makes_the_lists_better() -> None:
    """Whatever the seed: the worst list with the ranking beats the best without."""
    graph = synthetic(400)
    inputs = Inputs.of(graph)
    without, ranked = (
        [ndcg(e, inputs) for e in rg.fit(graph, "redress", seeds=3, epochs=80, alpha=a).logits]
        for a in (0.0, 0.1)
    )
    assert min(ranked) > max(without)


def test_the_same_seed_gives_the_same_numbers() -> None:
    graph = synthetic(300)
    runs = [rg.fit(graph, "redress", seeds=[2], epochs=10, alpha=0.1) for _ in range(2)]
    assert torch.equal(runs[0].logits, runs[1].logits)
    other = rg.fit(graph, "redress", seeds=[3], epochs=10, alpha=0.1)
    assert not torch.equal(runs[0].logits, other.logits)


def test_a_graph_without_training_nodes_can_be_predicted_on() -> None:
    graph = synthetic(200)
    method, inputs = find_method("redress"), Inputs.of(graph)
    trained = method.learner(inputs, method.defaults, seed=0)
    trained.epoch()
    del graph.train_mask, graph.val_mask, graph.test_mask, graph.y
    bare = Inputs.of(graph, num_classes=inputs.num_classes)
    restored = method.restore(bare, method.defaults, trained.module.state_dict())
    assert torch.equal(restored.logits(), trained.logits())


@pytest.mark.parametrize(
    "wrong", [{"alpha": -1}, {"alpha": "inf"}, {"sigma": 0}, {"sigma": "nan"}, {"k": 0}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict) -> None:
    (name,) = wrong
    with pytest.raises(RawlsError, match=f"^{name} must be"):
        with_changes(find_method("redress").defaults, wrong)
