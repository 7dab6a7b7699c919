"""The paper's claims hold where the tests say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rawlsgcn.paper.claims import accuracy_difference, claims, not_worse, paired_bias_test
from rawlsgcn.paper.trials import NodeLosses


def test_the_claim_about_cost_compares_with_a_gcn_of_as_many_epochs() -> None:
    def cell(method: str, variant: str, times: list[float]) -> dict[str, Any]:
        chosen = {"parameters": 7, "times": {"train": times, "prepare": [0.01]}}
        return {
            "name": method,
            "protocol": "efficiency",
            "dataset": "amazon-photo",
            "graph": "Amazon-Photo",
            "method": method,
            "title": method,
            "variant": variant,
            "chosen": {"validation": chosen, "test": chosen},
        }

    gcn = [cell("gcn", "100 epochs", [1.0, 1.1, 0.9]), cell("gcn", "200 epochs", [9.0] * 3)]
    (same,) = claims([*gcn, cell("rawlsgcn-grad", "", [1.05, 1.1, 0.95])], {})
    assert same["outcome"] == "holds"
    (slow,) = claims([*gcn, cell("rawlsgcn-grad", "", [2.0, 2.2, 1.8])], {})
    assert slow["outcome"] == "fails"


def nodes(rng: np.random.Generator, steep: float, right: float, seeds: int = 5) -> NodeLosses:
    """Losses that fall with the degree, the more so the steeper."""
    degree = np.sort(rng.integers(1, 20, 400)).astype(np.int32)
    loss = 2 - steep * degree / 20 + 0.1 * rng.random((seeds, 400))
    return NodeLosses(degree, loss, loss, rng.random((seeds, 400)) < right)


def test_a_lower_bias_is_found_and_the_order_matters() -> None:
    flat, steep = (nodes(np.random.default_rng(0), each, 0.8) for each in (0.3, 1.5))
    assert paired_bias_test([(flat, steep)], draws=99).outcome == "holds"
    assert paired_bias_test([(steep, flat)], draws=99).outcome == "fails"
    assert paired_bias_test([(flat, steep)], draws=99).p_seeds == pytest.approx(1 / 32)


def test_a_method_against_itself_is_unclear() -> None:
    one = nodes(np.random.default_rng(0), 1.0, 0.8)
    test = paired_bias_test([(one, one)], draws=99)
    assert test.outcome == "unclear"
    assert test.difference == 0
    assert test.p_seeds == test.p_nodes == 1


def test_p_values_are_uniform_under_the_null() -> None:
    """Two methods of the same kind: a p-value under 0.05 about as often as it says."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        degree = np.sort(rng.integers(1, 20, 100)).astype(np.int32)
        first, second = rng.exponential(size=(2, 5, 100))
        right = np.ones((5, 100), bool)
        pair = NodeLosses(degree, first, first, right), NodeLosses(degree, second, second, right)
        found.append(paired_bias_test([pair], draws=59).p_nodes)
    assert np.mean(np.array(found) <= 0.05) <= 0.15
    assert 0.35 < np.mean(found) < 0.65


def test_few_seeds_cannot_be_enough() -> None:
    flat, steep = (nodes(np.random.default_rng(0), each, 0.8, seeds=2) for each in (0.3, 1.5))
    assert paired_bias_test([(flat, steep)], draws=99).outcome == "unclear"


def test_the_accuracy_difference_is_the_difference_of_accuracies() -> None:
    rng = np.random.default_rng(0)
    good, bad = nodes(rng, 1, 0.95), nodes(rng, 1, 0.6)
    gain = accuracy_difference(good, bad)
    assert gain.value == pytest.approx(100 * (good.correct.mean() - bad.correct.mean()))
    assert gain.low < gain.value < gain.high
    assert not_worse(gain, 2) == "holds"
    assert not_worse(-gain, 2) == "fails"
    assert -gain == accuracy_difference(bad, good)


def test_node_losses_are_the_same_after_packing() -> None:
    rng = np.random.default_rng(0)
    one = nodes(rng, 1, 0.7)
    one.loss[0, :3] = np.inf, np.nan, 1e9
    back = NodeLosses.unpack(one.pack())
    assert (back.degree == one.degree).all()
    assert (back.correct == one.correct).all()
    assert np.allclose(back.loss[:, 3:], one.loss[:, 3:], rtol=1e-3)
    assert (back.loss[0, :3] == np.finfo(np.float16).max).all()
