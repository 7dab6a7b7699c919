"""A run's figures against plain Python, and what must not change them."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.calibration import CalibrationOutcome
from rawlsgcn.evaluation.run_metrics import evaluate_run

FIGURES = (
    "accuracy",
    "bias",
    "calibrated_bias",
    "temperature",
    "low_degree_accuracy",
    "high_degree_accuracy",
    "loss_slope",
    "accuracy_slope",
)


def example(seed: int, nodes: int = 150, classes: int = 3) -> tuple[Tensor, ...]:
    """A run that is better for higher degrees, with test, validation and unlabelled nodes."""
    rng = torch.Generator().manual_seed(seed)
    degree = torch.randint(0, 8, (nodes,), generator=rng)
    y = torch.randint(0, classes, (nodes,), generator=rng)
    logits = torch.randn(nodes, classes, generator=rng)
    logits[torch.arange(nodes), y] += 0.3 * degree
    y[torch.rand(nodes, generator=rng) < 0.1] = -1
    mask = torch.rand(nodes, generator=rng) < 0.7
    mask[(y >= 0).nonzero()[:2].squeeze(-1)] = True
    return logits, y, degree, mask, ~mask


def plain(logits: Tensor, y: Tensor, degree: Tensor, mask: Tensor, scale: float) -> dict:
    """The definitions, read aloud: one node after another, in Python's float64."""
    losses: dict[int, list[float]] = {}
    rights: dict[int, list[float]] = {}
    for u in range(len(y)):
        if not mask[u] or y[u] < 0:
            continue
        row = [float(value) / scale for value in logits[u]]
        top = max(row)
        loss = top + math.log(sum(math.exp(value - top) for value in row)) - row[int(y[u])]
        losses.setdefault(int(degree[u]), []).append(loss)
        rights.setdefault(int(degree[u]), []).append(float(row.index(top) == int(y[u])))
    means = {k: statistics.fmean(values) for k, values in losses.items()}
    degrees = sorted(k for k, values in rights.items() for _ in values)
    low, high = np.percentile(degrees, 25), np.percentile(degrees, 75)
    big = sorted(k for k, values in losses.items() if len(values) > 5)
    accuracies = [100 * statistics.fmean(rights[k]) for k in big]
    return {
        "accuracy": 100 * statistics.fmean(right for group in rights.values() for right in group),
        "bias": statistics.variance(means.values()),
        "low_degree_accuracy": 100
        * statistics.fmean(right for k, group in rights.items() if k <= low for right in group),
        "high_degree_accuracy": 100
        * statistics.fmean(right for k, group in rights.items() if k >= high for right in group),
        "loss_slope": statistics.linear_regression(big, [means[k] for k in big]).slope,
        "accuracy_slope": statistics.linear_regression(big, accuracies).slope,
    }


def figures(*run: Tensor) -> list[float]:
    judgement = evaluate_run(*run)
    return [getattr(judgement, name) for name in FIGURES]


@given(st.integers(0, 10_000), st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_figures_are_those_of_a_plain_loop(seed: int, classes: int) -> None:
    logits, y, degree, mask, val_mask = example(seed, classes=classes)
    judgement = evaluate_run(logits, y, degree, mask, val_mask)
    for name, value in plain(logits, y, degree, mask, 1.0).items():
        assert getattr(judgement, name) == pytest.approx(value, rel=1e-10, abs=1e-10), name
    scaled = plain(logits, y, degree, mask, judgement.temperature)
    assert judgement.calibrated_bias == pytest.approx(scaled["bias"], rel=1e-10)


@given(st.integers(0, 10_000), st.floats(-100, 100))
@settings(max_examples=15, deadline=None)
def test_order_of_nodes_and_a_constant_change_nothing(seed: int, constant: float) -> None:
    logits, y, degree, mask, val_mask = example(seed)
    logits = logits.double()
    before = figures(logits, y, degree, mask, val_mask)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    moved = [part[order] for part in (logits, y, degree, mask, val_mask)]
    assert figures(*moved) == pytest.approx(before, rel=1e-8)
    assert figures(logits + constant, y, degree, mask, val_mask) == pytest.approx(before, rel=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_blurring_hides_the_bias_but_not_the_calibrated_one(seed: int) -> None:
    logits, *rest = example(seed, nodes=400)
    logits = logits.double()
    sharp, blurred = evaluate_run(logits, *rest), evaluate_run(logits / 20, *rest)
    assert blurred.bias < sharp.bias / 20
    assert blurred.calibrated_bias == pytest.approx(sharp.calibrated_bias, rel=1e-8)
    assert blurred.low_degree_accuracy == sharp.low_degree_accuracy


def test_a_uniform_guess_has_no_bias() -> None:
    logits, *rest = example(0)
    guess = evaluate_run(torch.zeros_like(logits), *rest)
    assert guess.bias == pytest.approx(0, abs=1e-28)
    assert guess.loss_slope == pytest.approx(0, abs=1e-14)
    assert guess.temperature == 1
    assert guess.calibration is CalibrationOutcome.FLAT


def test_quarters_include_the_percentile_itself() -> None:
    degree = torch.tensor([1, 1, 2, 3, 4, 5, 6, 6])
    y = torch.zeros(8, dtype=torch.int64)
    logits = torch.tensor([[1.0, 0.0]] * 8)
    logits[[0, 2, 7]] = torch.tensor([0.0, 1.0])
    everything = torch.ones(8, dtype=torch.bool)
    judgement = evaluate_run(logits, y, degree, everything, ~everything)
    # percentiles 1.75 and 5.25: degrees {1, 1} and {6, 6}
    assert judgement.low_degree_accuracy == 50
    assert judgement.high_degree_accuracy == 50
    one = evaluate_run(logits, y, torch.ones(8), everything, ~everything)
    assert one.low_degree_accuracy == one.high_degree_accuracy == one.accuracy == 62.5


def test_what_is_not_defined_is_nan() -> None:
    logits, y, degree, mask, val_mask = example(1)
    one_degree = evaluate_run(logits, y, torch.ones_like(degree), mask, val_mask)
    assert math.isnan(one_degree.bias)
    assert math.isnan(one_degree.calibrated_bias)
    assert math.isnan(one_degree.loss_slope)
    assert math.isfinite(one_degree.accuracy)
    alone = evaluate_run(logits, y, torch.arange(len(y)), mask, val_mask)
    assert math.isnan(alone.accuracy_slope)
    assert math.isfinite(alone.bias)
    diverged = evaluate_run(torch.full_like(logits, math.nan), y, degree, mask, val_mask)
    assert math.isnan(diverged.accuracy)
    assert math.isnan(diverged.low_degree_accuracy)
    assert math.isnan(diverged.bias)
    assert math.isnan(diverged.temperature)


def test_without_validation_nodes_nothing_is_scaled() -> None:
    logits, y, degree, mask, _ = example(2)
    judgement = evaluate_run(logits, y, degree, mask, torch.zeros_like(mask))
    assert judgement.temperature == 1
    assert judgement.calibrated_bias == judgement.bias
    assert judgement.calibration is CalibrationOutcome.NO_NODES


def test_nothing_to_judge_is_a_sentence() -> None:
    logits, y, degree, mask, val_mask = example(3)
    with pytest.raises(RawlsError, match="none of the evaluated nodes has a label"):
        evaluate_run(logits, torch.full_like(y, -1), degree, mask, val_mask)


def test_a_judgement_can_be_written_as_json_and_leaves_no_gradient() -> None:
    logits, *rest = example(4)
    judgement = evaluate_run(logits.requires_grad_(), *rest)
    written = json.loads(json.dumps(asdict(judgement)))
    assert written["bias"] == judgement.bias
    assert written["calibration"] == CalibrationOutcome.FOUND.value
