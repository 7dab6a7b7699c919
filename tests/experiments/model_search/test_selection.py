"""The validation nodes as a judge: calibrated loss, and runs that diverged never win."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rawlsgcn.evaluation.calibration import (
    CalibrationOutcome,
    precise_temperature,
    temperature,
)
from rawlsgcn.experiments.model_search.pool import Candidate, Member, WeightedMean
from rawlsgcn.experiments.model_search.selection import LEAST_LOSS, STEPS, Judge
from rawlsgcn.methods.ensemble import scores_of
from rawlsgcn.training import TrainedRun


def judge(nodes: int = 40) -> Judge:
    return Judge(torch.arange(nodes), torch.arange(nodes) % 3)


def probabilities(nodes: int = 60, sharpness: float = 2.0, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(nodes, 3, generator=random)
    logits[torch.arange(nodes), torch.arange(nodes) % 3] += sharpness
    return logits.softmax(-1)


def member(name: str, p: torch.Tensor) -> Member:
    return Member(Candidate(name, "gcn", {}), p, (), (), judge().losses(p), 1, 0.0)


def loss(p: torch.Tensor) -> float:
    return judge().losses(p).scaled


def test_the_loss_does_not_depend_on_the_temperature() -> None:
    p = probabilities()
    sharper = (3 * p.log()).softmax(-1)
    assert loss(sharper) == pytest.approx(loss(p), rel=1e-5)


def test_better_predictions_have_a_lower_loss() -> None:
    losses = [loss(probabilities(sharpness=s)) for s in (0.0, 1.0, 2.0, 4.0)]
    assert losses == sorted(losses, reverse=True)


def test_a_run_that_diverged_is_never_chosen() -> None:
    sound = probabilities(sharpness=0.1)
    broken = torch.full_like(sound, math.nan)
    runs = [TrainedRun(1, {}, logits) for logits in (broken, sound, broken)]
    assert judge().best(runs, 3) == [1]
    assert loss(broken) == math.inf


def test_a_mean_is_taken_only_if_it_is_better_than_the_best_alone() -> None:
    good, bad = (
        member("good", probabilities(sharpness=6)),
        member("bad", probabilities(sharpness=-3)),
    )
    alone = WeightedMean.best([bad, good], judge())
    assert alone.weights == {good: 1.0}
    pair = [member("a", probabilities(seed=1)), member("b", probabilities(seed=2))]
    chosen = WeightedMean.best(pair, judge())
    assert len(chosen.weights) == 2
    assert loss(chosen.probabilities) < min(each.losses.scaled for each in pair)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.floats(-2, 4))
def test_the_chosen_mean_is_never_worse_than_the_best_alone(seeds: list[int], sharp: float) -> None:
    pool = [member(str(seed), probabilities(seed=seed, sharpness=sharp)) for seed in seeds]
    chosen = WeightedMean.best(pool, judge())
    # Losses under the least one count as the same: see Losses.rank.
    best = max(min(each.losses.scaled for each in pool), LEAST_LOSS)
    assert loss(chosen.probabilities) <= best * (1 + 1e-6)
    assert sum(chosen.weights.values()) == pytest.approx(1)
    assert min(chosen.weights.values()) >= 1 / STEPS
    torch.testing.assert_close(chosen.probabilities.sum(-1), torch.ones(60))


def test_weights_are_those_of_the_greedy_steps() -> None:
    pool = [member(str(k), probabilities(seed=k, sharpness=1 + 0.2 * k)) for k in range(3)]
    taken: list[torch.Tensor] = []
    for _ in range(STEPS):
        means = [torch.stack([*taken, each.probabilities.double()]).mean(0) for each in pool]
        best = min(range(3), key=lambda k: loss(means[k]))
        taken.append(pool[best].probabilities.double())
    prefixes = [torch.stack(taken[:count]).mean(0) for count in range(1, STEPS + 1)]
    wanted = min(prefixes, key=loss)
    chosen = WeightedMean.best(pool, judge())
    assert 1 < len(chosen.weights) < STEPS
    assert len(set(chosen.weights.values())) > 1  # a member was taken more than once
    torch.testing.assert_close(chosen.probabilities, wanted.float(), rtol=1e-5, atol=1e-6)


def test_among_members_without_a_loss_the_surer_one_is_chosen() -> None:
    """All of them separate the validation nodes, so that a low temperature makes their loss 0."""
    right = torch.nn.functional.one_hot(torch.arange(60) % 3, 3).double()
    vague, sure = (share * right + (1 - share) / 3 for share in (0.1, 0.8))
    chosen = WeightedMean.best([member("vague", vague), member("sure", sure)], judge())
    assert [each.name for each in chosen.weights] == ["sure"]


def test_many_validation_nodes_are_sampled() -> None:
    many = Judge(torch.arange(1000), torch.arange(1000) % 3)
    few = many.sample(100)
    assert len(few.nodes) == len(few.nodes.unique()) == 100
    assert torch.equal(few.y, few.nodes % 3)
    assert (few.nodes[0], few.nodes[-1]) == (0, 999)
    assert many.sample(1000) is many


def test_few_easy_nodes_leave_probabilities_as_they_are() -> None:
    """A temperature that the nodes leave open would make every answer almost certain."""
    y = torch.tensor([0, 1] * 6)
    sure = torch.full((12, 2), 0.2).scatter(1, y[:, None], 0.8)
    sure[0] = torch.tensor([0.45, 0.55])
    judge = Judge(torch.arange(12), y)
    assert temperature(scores_of(sure), y).outcome is CalibrationOutcome.FOUND
    assert precise_temperature(scores_of(sure), y).outcome is CalibrationOutcome.IMPRECISE
    assert judge.temperature(sure) == 1.0
