"""A run's figures and the frame by degree against plain Python, and what must not change them."""

from __future__ import annotations

import json
import math
import statistics
import time
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.calibration import CalibrationOutcome
from rawlsgcn.evaluation.degree_bias import SMALLEST_GROUP
from rawlsgcn.evaluation.run_metrics import degree_frame, evaluate_run, worst_off

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
    if not judgement.calibration.usable:
        assert math.isnan(judgement.calibrated_bias)
        return
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
    assert figures(*moved) == pytest.approx(before, rel=1e-8, nan_ok=True)
    assert figures(logits + constant, y, degree, mask, val_mask) == pytest.approx(
        before, rel=1e-8, nan_ok=True
    )


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


def test_without_validation_nodes_there_is_no_calibrated_bias() -> None:
    logits, y, degree, mask, _ = example(2)
    judgement = evaluate_run(logits, y, degree, mask, torch.zeros_like(mask))
    assert judgement.temperature == 1
    assert math.isnan(judgement.calibrated_bias)
    assert math.isfinite(judgement.bias)
    assert judgement.calibration is CalibrationOutcome.NO_NODES


def test_a_temperature_of_a_few_sure_nodes_gives_no_calibrated_bias() -> None:
    """Three validation nodes without a mistake: the lowest temperature, and losses of thousands."""
    logits = torch.tensor([[3.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 0.0], [0.0, 3.0]])
    y, degree = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([1, 2, 3, 1, 2])
    validation = torch.tensor([True, True, True, False, False])
    judgement = evaluate_run(logits, y, degree, ~validation, validation)
    assert judgement.calibration is CalibrationOutcome.SEPARABLE
    assert math.isnan(judgement.calibrated_bias)
    assert judgement.bias == pytest.approx(4.5, rel=1e-2)


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


ENDS = ["loss_low", "loss_high", "accuracy_low", "accuracy_high"]


def several_runs(seed: int, nodes: int = 200, runs: int = 3) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(runs, nodes, 3, generator=rng)
    y = torch.randint(-1, 3, (nodes,), generator=rng)
    degree = torch.randint(0, 12, (nodes,), generator=rng) ** 2
    mask = torch.rand(nodes, generator=rng) < 0.8
    mask[(y >= 0).nonzero()[0]] = True
    return logits, y, degree, mask


@given(st.integers(0, 10_000), st.integers(5, 100), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_means_are_those_of_a_plain_loop(seed: int, nodes: int, runs: int) -> None:
    logits, y, degree, mask = several_runs(seed, nodes, runs)
    frame = degree_frame(logits, y, degree, mask, resamples=20)
    losses: dict[int, list[float]] = {}
    rights: dict[int, list[float]] = {}
    for u in range(nodes):
        if mask[u] and y[u] >= 0:
            each = [logits[r, u].double() for r in range(runs)]
            loss = statistics.fmean(float(-z.log_softmax(0)[y[u]]) for z in each)
            right = statistics.fmean(float(z.argmax() == y[u]) for z in each)
            losses.setdefault(int(degree[u]), []).append(loss)
            rights.setdefault(int(degree[u]), []).append(right)
    assert frame.index.tolist() == sorted(losses)
    assert frame.index.name == "degree"
    for k in losses:
        assert frame.loc[k, "count"] == len(losses[k])
        assert frame.loc[k, "loss"] == pytest.approx(statistics.fmean(losses[k]), rel=1e-10)
        assert frame.loc[k, "accuracy"] == pytest.approx(100 * statistics.fmean(rights[k]))
        if len(losses[k]) >= SMALLEST_GROUP:
            assert frame.loc[k, "loss_low"] <= frame.loc[k, "loss"] <= frame.loc[k, "loss_high"]


def test_one_run_may_come_without_its_axis_and_agrees_with_the_judgement() -> None:
    logits, y, degree, mask = several_runs(1, runs=1)
    frame = degree_frame(logits[0], y, degree, mask)
    pd.testing.assert_frame_equal(frame, degree_frame(logits, y, degree, mask))
    judgement = evaluate_run(logits[0], y, degree, mask, mask)
    assert frame["loss"].var(ddof=1) == pytest.approx(judgement.bias, rel=1e-12)
    assert np.average(frame["accuracy"], weights=frame["count"]) == pytest.approx(
        judgement.accuracy
    )


def test_same_seed_same_intervals() -> None:
    whole = degree_frame(*several_runs(2), resamples=101, seed=5)
    pd.testing.assert_frame_equal(degree_frame(*several_runs(2), resamples=101, seed=5), whole)
    other = degree_frame(*several_runs(2), resamples=101, seed=6)
    assert not other["loss_low"].equals(whole["loss_low"])


def test_nodes_are_drawn_from_their_own_degree_only() -> None:
    """With losses constant within a degree, no resample can leave that constant."""
    degree = torch.arange(40) % 4
    logits = torch.stack([degree.double(), torch.zeros(40)], 1)
    y, everything = torch.zeros(40, dtype=torch.int64), torch.ones(40, dtype=torch.bool)
    frame = degree_frame(logits, y, degree, everything)
    assert frame["loss"].nunique() == 4
    assert frame["loss_low"].tolist() == pytest.approx(frame["loss"].tolist(), abs=1e-12)
    assert frame["loss_high"].tolist() == pytest.approx(frame["loss"].tolist(), abs=1e-12)


def test_a_small_degree_has_no_interval() -> None:
    logits, y, degree, mask = several_runs(3)
    degree[(mask & (y >= 0)).nonzero()[0]] = 999
    frame = degree_frame(logits, y, degree, mask)
    assert frame.loc[999, ENDS].isna().all()
    large = frame["count"] >= SMALLEST_GROUP
    assert large.any()
    assert frame.loc[large, ENDS].notna().all(axis=None)
    assert frame.loc[~large, ENDS].isna().all(axis=None)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """500 groups of 60 nodes with a known mean loss and accuracy: a 90 % interval covers 90 %."""
    rng = torch.Generator().manual_seed(0)
    groups, size, share = 500, 60, 0.7
    degree = torch.arange(groups).repeat_interleave(size)
    right = torch.rand(groups * size, generator=rng) < share
    logits = torch.tensor([1.0, -1.0]).repeat(groups * size, 1)
    everything = torch.ones(groups * size, dtype=torch.bool)
    frame = degree_frame(logits, (~right).long(), degree, everything, resamples=400, level=0.9)
    truth = np.log1p(np.exp(-2)) + (1 - share) * 2
    covered = ((frame["loss_low"] <= truth) & (truth <= frame["loss_high"])).mean()
    assert 0.86 <= covered <= 0.94
    covered = (
        (frame["accuracy_low"] <= 100 * share) & (100 * share <= frame["accuracy_high"])
    ).mean()
    assert 0.86 <= covered <= 0.94


def test_higher_level_wider_interval() -> None:
    narrow, wide = (degree_frame(*several_runs(4), level=level).dropna() for level in (0.5, 0.99))
    assert len(wide)
    assert (wide["loss_high"] - wide["loss_low"] > narrow["loss_high"] - narrow["loss_low"]).all()


def test_a_thousand_nodes_take_no_time() -> None:
    parts = several_runs(5, nodes=1300, runs=5)
    seconds = []
    for _ in range(5):  # the best of five: the machine may be busy with something else
        start = time.perf_counter()
        degree_frame(*parts)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.3


def test_the_worst_off_are_the_least_accurate_of_the_degrees_that_can_be_judged() -> None:
    frame = pd.DataFrame(
        {
            "count": [9, 10, 11, 12, 13],
            "loss": [9.0, 1.0, 2.0, 3.0, 0.5],
            "accuracy": [0.0, 40.0, 30.0, 30.0, 90.0],
        },
        index=pd.Index([1, 2, 3, 4, 5], name="degree"),
    )
    assert worst_off(frame).index.tolist() == [4, 3, 2]
    assert worst_off(frame, 1).index.tolist() == [4]
    assert worst_off(frame, 9, at_least=1).index.tolist() == [1, 4, 3, 2, 5]
    assert worst_off(frame, at_least=100).empty


def test_nothing_to_show_is_a_sentence() -> None:
    logits, y, degree, mask = several_runs(6)
    with pytest.raises(RawlsError, match="none of the evaluated nodes has a label"):
        degree_frame(logits, y, degree, torch.zeros_like(mask))
