"""The frame by degree: its means, its intervals, and the worst off."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.by_degree import degree_frame, worst_off
from rawlsgcn.evaluation.degree_groups import SMALLEST_GROUP
from rawlsgcn.evaluation.run_metrics import evaluate_run

ENDS = ["loss_low", "loss_high", "accuracy_low", "accuracy_high"]


def example(seed: int, nodes: int = 200, runs: int = 3) -> tuple[Tensor, ...]:
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
    logits, y, degree, mask = example(seed, nodes, runs)
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
    logits, y, degree, mask = example(1, runs=1)
    frame = degree_frame(logits[0], y, degree, mask)
    pd.testing.assert_frame_equal(frame, degree_frame(logits, y, degree, mask))
    judgement = evaluate_run(logits[0], y, degree, mask, mask)
    assert frame["loss"].var(ddof=1) == pytest.approx(judgement.bias, rel=1e-12)
    assert np.average(frame["accuracy"], weights=frame["count"]) == pytest.approx(
        judgement.accuracy
    )


def test_same_seed_same_intervals() -> None:
    whole = degree_frame(*example(2), resamples=101, seed=5)
    pd.testing.assert_frame_equal(degree_frame(*example(2), resamples=101, seed=5), whole)
    other = degree_frame(*example(2), resamples=101, seed=6)
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
    logits, y, degree, mask = example(3)
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
    narrow, wide = (degree_frame(*example(4), level=level).dropna() for level in (0.5, 0.99))
    assert len(wide)
    assert (wide["loss_high"] - wide["loss_low"] > narrow["loss_high"] - narrow["loss_low"]).all()


def test_a_thousand_nodes_take_no_time() -> None:
    parts = example(5, nodes=1300, runs=5)
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
    logits, y, degree, mask = example(6)
    with pytest.raises(RawlsError, match="none of the evaluated nodes has a label"):
        degree_frame(logits, y, degree, torch.zeros_like(mask))
