"""Ensembles: the mean of runs, described by text that may come from a damaged file."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rawlsgcn as rg
from rawlsgcn.graphs import check
from rawlsgcn.methods import Inputs, find_method
from rawlsgcn.methods.ensemble import (
    Ensemble,
    EnsembleLearner,
    EnsembleRun,
    EnsembleSettings,
    joined_states,
    scores_of,
    state_of_run,
)


def test_the_answer_is_the_weighted_mean_of_the_runs() -> None:
    graph = check(rg.synthetic(150, seed=1))
    inputs = Inputs.of(graph)
    results = [rg.fit(graph, name, seeds=1, epochs=5) for name in ("gcn", "smoothed-mlp")]
    runs = [
        EnsembleRun(result.method, find_method(result.method).configure({"epochs": 5}), weight)
        for result, weight in zip(results, (0.25, 0.75), strict=True)
    ]
    settings = EnsembleSettings.of(runs, temperature=2.0)
    state = joined_states([result.states[0] for result in results])
    learner = Ensemble().restore(inputs, settings, state)
    first, second = (result.probabilities(0).double() for result in results)
    expected = (0.25 * first + 0.75 * second).log() / 2
    torch.testing.assert_close(learner.logits().double(), expected, rtol=1e-5, atol=1e-5)
    assert set(learner.module.state_dict()) == set(state)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=5))
def test_settings_survive_the_text(weights: list[float]) -> None:
    gcn = find_method("gcn").configure({"lr": 0.05, "hidden_channels": 3})
    runs = tuple(EnsembleRun("gcn", gcn, weight) for weight in weights)
    again = Ensemble().configure({"runs": EnsembleSettings.of(runs).runs})
    assert isinstance(again, EnsembleSettings)
    assert again.parsed == runs


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "{}[",
        "[1]",
        '[{"method": "gcn"}]',
        '[{"method": "gcn", "settings": [], "weight": 1}]',
        '[{"method": "gcn", "settings": {}, "weight": "much"}]',
        '[{"method": "gcn", "settings": {}, "weight": NaN}]',
        '[{"method": "gcn", "settings": {"lr": -1}, "weight": 1}]',
        '[{"method": "auto", "settings": {}, "weight": 1}]',
        '[{"method": "dsgcn", "settings": {}, "weight": 1}]',
        "[" * 5000,
    ],
)
def test_a_damaged_description_is_one_sentence(text: str) -> None:
    with pytest.raises(rg.RawlsError) as caught:
        Ensemble().configure({"runs": text})
    assert "\n" not in str(caught.value)


def test_an_ensemble_is_not_trained() -> None:
    with pytest.raises(rg.RawlsError, match="rawlsgcn auto"):
        rg.fit(rg.synthetic(150), "auto", seeds=1)
    with pytest.raises(rg.RawlsError, match="no runs"):
        EnsembleLearner(Inputs.of(check(rg.synthetic(150))), EnsembleSettings(), {})
    assert "auto" not in rg.methods()


def test_scores_are_finite_and_states_are_kept_apart() -> None:
    probabilities = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert bool(scores_of(probabilities).isfinite().all())
    torch.testing.assert_close(scores_of(probabilities).softmax(-1), probabilities)
    states = [{"a": torch.ones(1)}, {"a": torch.zeros(1), "b": torch.ones(2)}]
    joined = joined_states(states)
    assert [set(state_of_run(joined, number)) for number in (0, 1)] == [{"a"}, {"a", "b"}]
    many = joined_states([{"a": torch.ones(1)}] * 12)
    assert set(state_of_run(many, 1)) == {"a"}
