"""check_method: every method of ours passes it, and each way to break the contract is caught."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rawlsgcn._core.errors import RawlsError
from rawlsgcn._core.random_state import random_state
from rawlsgcn.experiments import method_checks as testing
from rawlsgcn.experiments.method_checks import CHECKS, check_method
from rawlsgcn.methods import Inputs, Learner, Method, Settings, find_method, method_names


@pytest.mark.parametrize("name", method_names())
def test_our_methods_pass(name: str) -> None:
    check_method(name)


@pytest.mark.parametrize(
    "settings",
    [{"num_layers": 1}, {"num_layers": 3}, {"dropout": 0.0}, {"normalize_features": False}],
)
def test_the_main_methods_pass_with_other_settings(settings: dict[str, Any]) -> None:
    for name in ("gcn", "rawlsgcn-graph", "rawlsgcn-grad"):
        check_method(name, **settings)


class Linear(Learner):
    """Softmax regression on the features and the mean of the neighbours: a method that is whole."""

    def __init__(self, inputs: Inputs, settings: Settings, seed: int) -> None:
        self.inputs = inputs
        generator = torch.Generator().manual_seed(seed)
        self.module = torch.nn.utils.skip_init(
            nn.Linear, 2 * inputs.num_features, inputs.num_classes
        )
        for parameter in self.module.parameters():
            parameter.data.uniform_(-0.5, 0.5, generator=generator)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=settings.lr)

    def epoch(self) -> float:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            self.scores()[self.inputs.train], self.inputs.y[self.inputs.train]
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()

    def scores(self) -> Tensor:
        x = self.inputs.x.to_dense() if self.inputs.x.layout != torch.strided else self.inputs.x
        row, column = self.inputs.edge_index
        around = torch.zeros_like(x).index_add_(0, row, x[column])
        out: Tensor = self.module(torch.cat([x, around / self.divisor()], 1))
        return out

    def divisor(self) -> Tensor:
        return self.inputs.degree.clamp(min=1)[:, None]

    @torch.no_grad()
    def logits(self) -> Tensor:
        return self.scores()


class Whole(Method):
    name, title, defaults = "own", "Own", Settings(lr=0.1, epochs=5)
    kind: type[Learner] = Linear

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        return self.kind(inputs, settings, seed)  # type: ignore[call-arg]


def broken(**parts: Any) -> Method:
    """The whole method with some of its learner's functions replaced."""
    kind = type("Broken", (Linear,), parts)
    return type("BrokenMethod", (Whole,), {"kind": kind})()


def test_a_method_of_ones_own_passes_as_a_class_or_an_object() -> None:
    check_method(Whole)
    check_method(Whole())


def reseeding(self: Any, inputs: Inputs, settings: Settings, seed: int) -> None:
    torch.manual_seed(seed)
    Linear.__init__(self, inputs, settings, seed)


def numpy_in_epoch(self: Any) -> float:
    np.random.rand()
    return Linear.epoch(self)


def python_in_logits(self: Any) -> Tensor:
    random.random()
    return Linear.logits(self)


def unseeded(self: Any, inputs: Inputs, settings: Settings, seed: int) -> None:
    Linear.__init__(self, inputs, settings, seed)
    self.module.weight.data += np.random.default_rng().random()


def globally_seeded(self: Any, inputs: Inputs, settings: Settings, seed: int) -> None:
    Linear.__init__(self, inputs, settings, seed)
    self.module.weight.data += torch.rand(())


def forgetful(self: Any) -> Tensor:
    """What it knows of its epochs is not in the module."""
    return Linear.logits(self) * (1 + len(self.optimizer.state_dict()["state"]) + self.epochs)


def counted(self: Any) -> float:
    self.epochs += 1
    return Linear.epoch(self)


def by_classes(self: Any) -> Tensor:
    return Linear.logits(self) / (len(self.inputs.y[self.inputs.train].unique()) - 1)


def ordered(self: Any) -> Tensor:
    return Linear.logits(self) + torch.arange(self.inputs.num_nodes)[:, None] / 10


@pytest.mark.parametrize(
    ("method", "check"),
    [
        (broken(logits=lambda self: Linear.logits(self) * torch.nan), "scores_are_finite"),
        (broken(logits=lambda self: Linear.logits(self)[:, :2]), "scores_are_finite"),
        (broken(__init__=reseeding), "random_state"),
        (broken(epoch=numpy_in_epoch), "random_state"),
        (broken(logits=python_in_logits), "random_state"),
        (broken(__init__=unseeded), "same_seed"),
        (broken(__init__=globally_seeded), "same_seed"),
        (broken(epochs=0, epoch=counted, logits=forgetful), "saved_state"),
        (broken(logits=ordered), "order_of_nodes"),
        (broken(divisor=lambda self: self.inputs.degree[:, None]), "isolated_nodes"),
        (broken(divisor=lambda self: self.inputs.degree.max()), "without_edges"),
        (broken(logits=by_classes), "one_class"),
        (broken(validation_score=lambda self: 1 / 0), "random_state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_method_is_caught(method: Method, check: str) -> None:
    with pytest.raises(AssertionError, match=f"own fails check_[a-z_]*{check}[a-z_]*:"):
        check_method(method)


def test_an_error_inside_a_method_is_named_with_its_check() -> None:
    def crash(self: Any) -> float:
        raise IndexError("row 7")

    with pytest.raises(
        AssertionError, match=r"own fails check_scores_are_finite: IndexError.*row 7"
    ):
        check_method(broken(epoch=crash))


def test_a_method_that_reads_labels_to_predict_is_caught() -> None:
    def peeking(self: Any) -> Tensor:
        return Linear.logits(self) + nn.functional.one_hot(self.inputs.y, self.inputs.num_classes)

    with pytest.raises(AssertionError, match="another_graph"):
        check_method(broken(logits=peeking))


def test_the_check_itself_keeps_the_random_state() -> None:
    before = random_state()
    check_method("gcn")
    assert random_state() == before


def test_unknown_names_and_settings_are_told() -> None:
    with pytest.raises(RawlsError, match="did you mean gcn"):
        check_method("gnc")
    with pytest.raises(RawlsError, match="did you mean hidden_channels"):
        check_method("gcn", hiden=3)


def test_every_check_is_run_and_says_what_it_asks() -> None:
    named = {value for name, value in vars(testing).items() if name.startswith("check_")}
    assert named - {check_method} == set(CHECKS)
    assert all(check.__doc__ for check in CHECKS)
    assert find_method("gcn")
