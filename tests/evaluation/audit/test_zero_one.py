"""With classes alone a loss is one minus accuracy, and so is everything that is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.evaluation.audit.findings import Estimate
from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.intervals import GroupMeans, slopes
from rawlsgcn.evaluation.audit.resampling import resampled
from rawlsgcn.experiments.auditing.audit_result import Audit


def mirrored(loss: Estimate, accuracy: Estimate) -> None:
    expected = [1 - each / 100 for each in (accuracy.value, accuracy.high, accuracy.low)]
    assert [loss.value, loss.low, loss.high] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def audited(wrong: float, **options: Any) -> Audit:
    """Two hundred nodes on a path with chords, of which a share of ``wrong`` are."""
    rng = np.random.default_rng(0)
    ends = [(i, i + 1) for i in range(199)] + [(i, i * 3 % 200) for i in range(1, 200, 4)]
    y = np.arange(200) % 2
    graph = Data(edge_index=torch.tensor(ends).t(), y=torch.from_numpy(y), num_nodes=200)
    return rg.audit(graph, np.where(rng.random(200) < wrong, 1 - y, y), resamples=100, **options)


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.5, 1.0])
def test_every_loss_mirrors_its_accuracy(wrong: float) -> None:
    model = audited(wrong, bins="quantile:3").models[0]
    mirrored(model.loss, model.accuracy)
    for each in (*model.groups, *model.curve):
        mirrored(each.loss, each.accuracy)
        if each.nodes >= 10:
            assert 0 <= each.loss.low < each.loss.high <= 1
    for group in model.groups:
        turned = group.accuracy_against_rest
        found = group.loss_against_rest
        assert [found.low, found.high] == pytest.approx([-turned.high / 100, -turned.low / 100])
    assert model.by_accuracy is not None
    assert model.by_accuracy.difference.high <= 100


@pytest.mark.parametrize("nodes", [10, 15, 20, 30, 100])
def test_intervals_of_a_share_cover_it(nodes: int) -> None:
    """Exactly, over all that can be seen: for shares from 5 to 95 % together in 93 to 97 % of
    cases, and from 30 nodes on at least in 93 % for each of them."""
    count = np.arange(nodes + 1)
    intervals = []
    for wrong in count:
        loss = (np.arange(nodes) < wrong).astype(float)
        grouped = GroupedScores.of(np.ones(nodes), loss, 1 - loss)
        intervals.append(
            GroupMeans(grouped.sums(), resampled(grouped, 100, 0), zero_one=True).loss(0)
        )
    low, high = (np.array([getattr(each, end) for each in intervals]) for end in ("low", "high"))
    shares = np.arange(5, 96) / 100
    covered = np.array(
        [binom.pmf(count, nodes, p) @ ((low <= p) & (p <= high)) for p in shares.tolist()]
    )
    assert 0.93 <= covered.mean() <= 0.97
    assert covered.min() >= (0.9295 if nodes >= 30 else 0.91)


def test_where_everybody_is_right_the_truth_is_covered() -> None:
    loss = np.zeros(25)
    grouped = GroupedScores.of(np.ones(25), loss, 1 - loss)
    found = GroupMeans(grouped.sums(), resampled(grouped, 100, 0), zero_one=True)
    assert found.loss(0).low == 0
    assert found.accuracy(0).high == 100


@pytest.mark.parametrize("wrong", [0, 9, 10, 45])
def test_a_trend_of_answers_needs_ten_right_and_ten_wrong(wrong: int) -> None:
    """With fewer wrong ones its interval would cover too little, and have no width with none."""
    loss = (np.random.default_rng(0).permutation(50) < wrong).astype(float)
    grouped = GroupedScores.of(np.arange(50) % 5 + 1, loss, 1 - loss)
    found = slopes(grouped, resampled(grouped, 200, 0))
    assert found is not None
    told = 10 <= wrong <= 40
    assert np.isfinite(found.loss.low) == np.isfinite(found.accuracy.high) == told


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "least"), [(100, 0.89), (200, 0.92), (400, 0.93)])
def test_the_trend_of_answers_covers_less_where_few_are_wrong(nodes: int, least: float) -> None:
    """About one in eight is wrong, the fewer the higher the degree; 1,000 sets of data."""
    rng = np.random.default_rng(0)
    covered = []
    for repeat in range(1000):
        degree = np.minimum(np.floor(3 * rng.pareto(1.1, nodes) + 1), 64)
        right = (rng.random(nodes) < 0.85 + 0.1 * np.log2(1 + degree) / 6).astype(float)
        grouped = GroupedScores.of(degree, 1 - right, right)
        found = slopes(grouped, resampled(grouped, 200, repeat))
        assert found is not None
        if np.isfinite(found.accuracy.low):
            covered.append(found.accuracy.low <= 10 / 6 <= found.accuracy.high)
    assert least <= np.mean(covered) <= 0.97
