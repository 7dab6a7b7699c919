"""A model has learned where its training accuracy is clearly above the majority class's share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.evaluation.majority_baseline import Learning, better_than_constant, has_learned

BALANCED = torch.arange(9).repeat(20)


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.integers(0, 8))
def test_a_constant_prediction_has_learned_only_where_it_is_never_wrong(
    labels: list[int], constant: int
) -> None:
    y = torch.tensor(labels)
    assert has_learned(torch.full_like(y, constant), y) == bool((y == constant).all())


@settings(deadline=None)
@given(st.lists(st.integers(-1, 8), max_size=60))
def test_a_model_without_a_wrong_prediction_has_learned(labels: list[int]) -> None:
    y = torch.tensor(labels, dtype=torch.long)
    assert has_learned(y, y)


def test_guesses_have_not_learned_but_for_the_share_that_the_level_allows() -> None:
    generator = torch.Generator().manual_seed(0)
    guesses = torch.randint(0, 9, (500, len(BALANCED)), generator=generator)
    share = sum(has_learned(each, BALANCED) for each in guesses) / 500
    # The level is 0.05; four standard errors of a share of 500 are 0.04.
    assert share < 0.09


@pytest.mark.parametrize(("right", "learned"), [(20, False), (25, False), (40, True), (160, True)])
def test_the_border_is_a_binomial_test_against_the_most_frequent_class(
    right: int, learned: bool
) -> None:
    predicted = torch.where(torch.arange(180) < right, BALANCED, (BALANCED + 1) % 9)
    assert has_learned(predicted, BALANCED) is learned


def test_nodes_without_a_label_are_left_out() -> None:
    y = torch.tensor([0, 1, 0, 1, -1, -1])
    assert Learning.of(torch.tensor([0, 1, 0, 1, 1, -1]), y) == Learning(4, 4, 2, 2)


def test_the_sentence_names_the_figures_and_what_to_try() -> None:
    said = Learning.of(torch.zeros_like(BALANCED), BALANCED).sentence("GCN", "more epochs")
    assert said.startswith("GCN has not learned: training accuracy 11 % on 9 classes")
    assert said.endswith("; try more epochs.")


def test_a_useful_model_of_uneven_classes_is_better_than_a_constant() -> None:
    """Right less often than a constant answer, yet it finds half of the rare class."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.03).astype(np.int64)
    found = np.where(y == 1, rng.random(4000) < 0.5, rng.random(4000) < 0.035).astype(np.int64)
    assert (found == y).mean() < (y == 0).mean()
    learned, majority = better_than_constant(found, y)
    assert learned
    assert majority == pytest.approx(100 * (y == 0).mean())
    guessed = (rng.random(4000) < 0.05).astype(np.int64)
    assert not better_than_constant(guessed, y)[0]
    # Of one class there is nothing to tell.
    assert better_than_constant(found[y == 1], y[y == 1])[0]


def test_guesses_are_not_better_than_a_constant() -> None:
    rng = np.random.default_rng(0)
    low, y = np.arange(400) < 100, np.arange(400) % 5
    guesses = rng.integers(0, 5, (400, 400))
    share = np.mean([better_than_constant(each, y, (low, ~low))[0] for each in guesses])
    assert share < 0.12  # 5 % for all nodes, 1 % for either part, and four standard errors
