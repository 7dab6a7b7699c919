"""Draws kept as sums are unbiased and the same on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.resampling import poisson, resampled


def grouped(nodes: int = 4000) -> GroupedScores:
    """Groups of one node to more than five hundred, so that every way of summing is taken."""
    rng = np.random.default_rng(0)
    degree = np.minimum(rng.zipf(1.6, nodes), 300)
    return GroupedScores.of(degree, 100 + rng.exponential(size=nodes), rng.random(nodes) < 0.7)


def test_weights_are_poisson() -> None:
    weights = poisson(np.random.default_rng(0), (1000, 1000))
    counts = np.bincount(weights.astype(int).ravel())[:4] / 1e6
    np.testing.assert_allclose(counts, np.exp(-1) / np.array([1, 1, 2, 6]), atol=0.002)
    assert weights.mean() == pytest.approx(1, abs=0.004)


def test_sums_are_those_of_the_nodes() -> None:
    data = grouped()
    assert (data.count == 1).any()
    assert (data.count >= 512).any()
    drawn = resampled(data, 2000, seed=0)
    error = 5 / np.sqrt(2000)
    for sums, values in (
        (drawn.count, np.ones_like(data.loss)),
        (drawn.total, data.loss),
        (drawn.square, data.loss**2),
        (drawn.right, data.right),
    ):
        expected, spread = data.sum(values), np.sqrt(data.sum(values**2))
        assert (np.abs(sums.mean(0) - expected) <= error * spread).all()
        seen = spread > 0
        np.testing.assert_allclose(sums.std(0)[seen], spread[seen], rtol=0.12)


def test_wider_groups_are_sums_of_narrower_ones() -> None:
    data = grouped(500)
    drawn = resampled(data, 100, seed=1)
    whole = drawn.joined(np.zeros(len(data.count), np.int64))
    np.testing.assert_allclose(whole.total[:, 0], drawn.total.sum(1))
    odd = drawn.joined(np.arange(len(data.count)) % 2)
    np.testing.assert_allclose(odd.total[:, 1], drawn.total[:, 1::2].sum(1))
    np.testing.assert_allclose(odd.others().total[:, 0], odd.total[:, 1])


def test_threads_do_not_change_the_draws() -> None:
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(resampled(grouped(40_000), 500, seed=3).total)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
