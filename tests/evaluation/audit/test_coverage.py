"""The statistics are right: on data of known truth, the intervals cover it as often as they say.

Every interval is made on a thousand sets of data (slow), and on 150 of them (quick). A share of a
thousand has a standard error of 0.7 points, so that 93 to 97 per cent is nearly three of them to
either side of 95; one of 150 has 1.8 points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rawlsgcn.evaluation.audit.findings import Estimate
from rawlsgcn.evaluation.audit.group_statistics import GroupedScores
from rawlsgcn.evaluation.audit.intervals import GroupMeans, difference, slopes
from rawlsgcn.evaluation.audit.net_variance import net_variance
from rawlsgcn.evaluation.audit.permutation_tests import shuffled_bias, swapped_bias
from rawlsgcn.evaluation.audit.resampling import resampled

RESAMPLES = 400
FEW, MANY = 150, pytest.param(1000, marks=pytest.mark.slow)
EDGES = np.array([1, 2, 4, 9])
"""Groups: degrees of 1, 2, 3-4, 5-9 and more."""
TAU2 = 0.1


def degrees(seed: int, nodes: int = 600) -> np.ndarray:
    """Many nodes of few neighbours, and as many degrees that are seen once as in a real graph."""
    rng = np.random.default_rng(seed)
    return np.sort(np.minimum(np.floor(3 * rng.pareto(1.1, nodes) + 1), 150).astype(int))


def noise(rng: np.random.Generator, nodes: int) -> np.ndarray:
    """Skewed like a cross entropy: a gamma distribution (skewness 1.15), mean 0 and variance 1."""
    return (rng.gamma(3, size=nodes) - 3) / np.sqrt(3)


@dataclass
class Counts:
    """How often an interval covered, and what was estimated."""

    covered: dict[str, list[bool]]
    net: list[float]
    repeats: int

    @property
    def within(self) -> float:
        """How far a share may be from 95 per cent: nearly three standard errors."""
        return 0.02 * np.sqrt(1000 / self.repeats)


@pytest.fixture(scope="module", params=[FEW, MANY])
def counts(request: pytest.FixtureRequest) -> Counts:
    return experiment(seed=0, repeats=request.param)


def experiment(seed: int, repeats: int) -> Counts:
    """Losses whose mean falls with log degree, whose spread does too, and right answers."""
    degree = degrees(seed)
    rng = np.random.default_rng([seed, 1])
    x = np.log2(1 + degree)
    truth, spread = 2 - 0.2 * x, degree**-0.25
    chance = 0.6 + 0.3 * x / x.max()
    member = np.searchsorted(EDGES, degree)
    present, place = np.unique(degree, return_inverse=True)
    fine = np.searchsorted(EDGES, present)
    means = [truth[member == g].mean() for g in range(5)]
    rates = [chance[member == g].mean() for g in range(5)]
    covered: dict[str, list[bool]] = {
        name: [] for name in ("loss", "accuracy", "loss difference", "accuracy difference")
    } | {"slope": [], "accuracy slope": []}
    line = np.polyfit(x, chance, 1)[0]
    net = []

    def cover(name: str, interval: Estimate, value: float) -> None:
        covered[name].append(interval.low <= value <= interval.high)

    for repeat in range(repeats):
        loss = truth + spread * noise(rng, len(degree))
        right = (rng.random(len(degree)) < chance).astype(float)
        grouped = GroupedScores.of(degree, loss, right)
        drawn = resampled(grouped, RESAMPLES, repeat)
        groups = GroupMeans.of(grouped, drawn, fine)
        for g in range(5):
            cover("loss", groups.loss(g), means[g])
            cover("accuracy", groups.accuracy(g), 100 * rates[g])
        rest = GroupMeans.of(grouped, drawn, (fine > 0).astype(int))
        rest_loss, rest_rate = truth[member > 0].mean(), chance[member > 0].mean()
        cover("loss difference", difference(rest.loss(0), rest.loss(1)), means[0] - rest_loss)
        gap = difference(rest.accuracy(0), rest.accuracy(1))
        cover("accuracy difference", gap, 100 * (rates[0] - rest_rate))
        slope = slopes(grouped, drawn)
        assert slope is not None
        cover("slope", slope.loss, -0.2)
        cover("accuracy slope", slope.accuracy, 100 * line)
        effect = np.sqrt(TAU2) * rng.standard_normal(len(present))
        mixed = grouped.with_loss(effect[place] + spread * noise(rng, len(degree)))
        net.append(net_variance(mixed))
    return Counts(covered, [each.unbiased for each in net], repeats)


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "accuracy",
        "loss difference",
        "accuracy difference",
        "slope",
        "accuracy slope",
    ],
)
def test_95_per_cent_intervals_cover_the_truth(counts: Counts, name: str) -> None:
    assert abs(np.mean(counts.covered[name]) - 0.95) <= counts.within


def test_the_net_variance_is_unbiased_with_degrees_of_a_single_node() -> None:
    """The one-way random effects model: one variance within all degrees, and one between them."""
    degree, rng = degrees(0), np.random.default_rng(3)
    present, place, seen = np.unique(degree, return_inverse=True, return_counts=True)
    assert (seen == 1).sum() > 20
    net, bias = [], []
    for _ in range(1000):
        effect = np.sqrt(TAU2) * rng.standard_normal(len(present))
        loss = effect[place] + noise(rng, len(degree))
        grouped = GroupedScores.of(degree, loss, np.ones(len(degree)))
        net.append(net_variance(grouped).unbiased)
        bias.append(grouped.bias)
    error = np.std(net) / np.sqrt(len(net))
    assert abs(np.mean(net) - TAU2) < 2 * error
    assert np.mean(bias) > 4 * TAU2  # the paper's own measure of the same


def test_noise_that_falls_with_degree_does_not_pass_for_bias(counts: Counts) -> None:
    """There the estimate is off by less than a sixth of its standard deviation."""
    error = 0 if counts.repeats >= 1000 else 2 / np.sqrt(counts.repeats)
    assert abs(np.mean(counts.net) - TAU2) < (0.15 + error) * np.std(counts.net)


@pytest.mark.parametrize("repeats", [500, pytest.param(3000, marks=pytest.mark.slow)])
def test_shuffling_rejects_a_true_null_in_5_per_cent_of_cases(repeats: int) -> None:
    rng, degree = np.random.default_rng(0), degrees(1, nodes=150)
    tests = [
        shuffled_bias(GroupedScores.of(degree, noise(rng, 150), np.ones(150)), 99, seed)
        for seed in range(repeats)
    ]
    within = 0.01 * np.sqrt(3000 / repeats)
    assert abs(np.mean([test.p <= 0.05 for test in tests]) - 0.05) <= within


@pytest.mark.parametrize("repeats", [500, pytest.param(3000, marks=pytest.mark.slow)])
def test_swapping_rejects_a_true_null_in_5_per_cent_of_cases(repeats: int) -> None:
    """Two models that differ by chance only: neither is fairer."""
    rng, degree = np.random.default_rng(0), degrees(1, nodes=150)
    lower = []
    for seed in range(repeats):
        both = [GroupedScores.of(degree, noise(rng, 150), np.ones(150)) for _ in range(2)]
        lower.append(swapped_bias(*both, 99, seed).p_lower <= 0.05)
    assert abs(np.mean(lower) - 0.05) <= 0.01 * np.sqrt(3000 / repeats)
