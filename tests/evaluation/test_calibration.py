"""The temperature is the least cross entropy's, and says when there is none."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn.evaluation.calibration import (
    HIGHEST,
    LARGEST_ERROR,
    LOWEST,
    CalibrationOutcome,
    precise_temperature,
    temperature,
)


def noisy(seed: int, nodes: int = 200, classes: int = 4, sharpness: float = 3.0) -> tuple:
    """Labels drawn from softmax(logits), then logits made ``sharpness`` times too sure."""
    rng = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(nodes, classes, generator=rng, dtype=torch.float64)
    y = torch.multinomial(logits.softmax(-1), 1, generator=rng).squeeze(-1)
    return sharpness * logits, y


def mean_loss(logits: Tensor, y: Tensor, at: float) -> float:
    return float(torch.nn.functional.cross_entropy(logits / at, y))


@given(st.integers(0, 10_000), st.floats(0.05, 50))
@settings(max_examples=40, deadline=None)
def test_no_temperature_nearby_or_far_fits_better(seed: int, sharpness: float) -> None:
    logits, y = noisy(seed, 60, sharpness=sharpness)
    best, outcome = temperature(logits, y)
    assume(outcome is CalibrationOutcome.FOUND)
    least = mean_loss(logits, y, best)
    for factor in (0.1, 0.5, 0.999, 1.001, 2, 10):
        assert mean_loss(logits, y, best * factor) >= least


@given(st.integers(0, 10_000), st.floats(0.05, 20))
@settings(max_examples=40, deadline=None)
def test_calibrated_logits_have_temperature_one(seed: int, sharpness: float) -> None:
    logits, y = noisy(seed, sharpness=sharpness)
    first = temperature(logits, y)
    assert first.outcome is CalibrationOutcome.FOUND
    assert temperature(logits / first.value, y).value == pytest.approx(1, abs=1e-9)
    assert temperature(5 * logits, y).value == pytest.approx(5 * first.value, rel=1e-9)


def test_the_truth_is_recovered() -> None:
    logits, y = noisy(0, nodes=100_000, sharpness=3.0)
    assert temperature(logits, y).value == pytest.approx(3.0, rel=0.03)


def test_two_classes_have_the_closed_form() -> None:
    """With logits ±m and a share q right, σ(2m/T) = q."""
    logits = torch.tensor([[2.0, -2.0]] * 10)
    y = torch.tensor([0] * 8 + [1] * 2)
    assert temperature(logits, y).value == pytest.approx(4 / math.log(0.8 / 0.2), rel=1e-12)


def test_what_has_no_temperature_says_so() -> None:
    sure = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    right, wrong = torch.tensor([0, 1]), torch.tensor([1, 0])
    assert temperature(sure, right) == (LOWEST, CalibrationOutcome.SEPARABLE)
    assert temperature(sure, wrong) == (HIGHEST, CalibrationOutcome.HOPELESS)
    assert temperature(torch.ones(3, 4), torch.tensor([0, 1, 2])) == (1.0, CalibrationOutcome.FLAT)
    assert temperature(sure[:0], right[:0]) == (1.0, CalibrationOutcome.NO_NODES)
    value, outcome = temperature(torch.tensor([[math.nan, 0.0]]), torch.tensor([0]))
    assert math.isnan(value)
    assert outcome is CalibrationOutcome.DIVERGED


def test_a_probability_of_zero_is_no_obstacle() -> None:
    logits, y = noisy(3)
    never = torch.full((len(y), 1), -torch.inf, dtype=torch.float64)
    with_zero = torch.cat([logits, never], 1)
    assert temperature(with_zero, y).value == pytest.approx(temperature(logits, y).value, rel=1e-12)


def drawn(nodes: int, sure: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of a calibrated model, whose true temperature is one, and labels drawn from them."""
    generator = torch.Generator().manual_seed(seed)
    logits = sure * torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    y = torch.multinomial(torch.softmax(logits, -1), 1, generator=generator).squeeze(-1)
    return logits, y


def test_the_standard_error_is_the_spread_of_the_temperature_over_samples() -> None:
    """Over samples of labels, log T spreads as the likelihood's second derivative says."""
    logits, _ = drawn(400, 2.0, 0)
    p = torch.softmax(logits, -1)
    mean = (p * logits).sum(-1, keepdim=True)
    error = float((p * (logits - mean) ** 2).sum()) ** -0.5
    generator = torch.Generator().manual_seed(1)
    labels = [torch.multinomial(p, 1, generator=generator).squeeze(-1) for _ in range(200)]
    logs = [math.log(temperature(logits, y).value) for y in labels]
    assert statistics.stdev(logs) == pytest.approx(error, rel=0.15)


def test_few_nodes_leave_the_temperature_open_and_many_do_not() -> None:
    assert math.exp(1.96 * LARGEST_ERROR) == pytest.approx(2)
    outcomes = {n: [precise_temperature(*drawn(n, 2.0, s)) for s in range(20)] for n in (8, 400)}
    assert all(each.outcome is CalibrationOutcome.FOUND for each in outcomes[400])
    assert not any(each.outcome is CalibrationOutcome.FOUND for each in outcomes[8])
    many, few = drawn(400, 2.0, 0), drawn(8, 2.0, 1)
    assert precise_temperature(*many) == temperature(*many)
    found = precise_temperature(*few)
    assert found == (temperature(*few).value, CalibrationOutcome.IMPRECISE)
    assert not found.outcome.usable
