"""The verdict says what the numbers say, in either direction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.reporting.verdict import Difference, Quarters, correctness, verdict


def test_low_degrees_worse_off_with_the_results_own_numbers(make):
    result = make()
    told = verdict([result])
    quarters = Quarters.of(result)
    assert told.headline == "Low-degree nodes are worse off"
    for part in (
        f"at most {quarters.at_most} neighbour",
        f"at least {quarters.at_least} neighbour",
        f"{result.low_degree_accuracy.mean:.1f} %",
        f"{result.high_degree_accuracy.mean:.1f} %",
        "behind by "
        f"{result.high_degree_accuracy.mean - result.low_degree_accuracy.mean:.1f} points",
    ):
        assert part in told.sentences[0]


def test_low_degrees_better_off(make):
    told = verdict([make(base=4, by_degree=-1.2)])
    assert told.headline == "Low-degree nodes are better off"
    assert "ahead by" in told.sentences[0]


def test_no_gap_is_called_no_gap(make):
    told = verdict([make(base=1.5, by_degree=0)])
    assert "about equally" in told.headline
    assert "may be chance" in told.sentences[0]


def test_a_method_that_helps(three):
    told = verdict(three)
    assert told.headline == (
        "RawlsGCN-Graph and RawlsGCN-Grad serve low-degree nodes better than GCN"
    )
    gain = three[1].low_degree_accuracy.mean - three[0].low_degree_accuracy.mean
    assert f"low-degree nodes gain {gain:.1f} points over GCN" in told.sentences[1]
    assert (
        f"{three[1].accuracy.mean:.1f} % against {three[0].accuracy.mean:.1f} %"
        in (told.sentences[1])
    )


def test_the_gcn_is_the_yardstick_wherever_it_stands(three):
    assert verdict(three[::-1]).headline.endswith("than GCN")


def test_a_method_that_harms(make):
    results = [make(base=2), make("rawlsgcn-graph", "RawlsGCN-Graph", base=0.5)]
    told = verdict(results)
    assert told.headline == "RawlsGCN-Graph serves low-degree nodes worse than GCN"
    assert "low-degree nodes lose" in told.sentences[1]


def test_a_method_that_changes_nothing(make):
    told = verdict([make(), make("rawlsgcn-graph", "RawlsGCN-Graph")])
    assert told.headline.startswith("RawlsGCN-Graph makes no clear difference")
    assert "no clear change for low-degree nodes against GCN (0.0 points" in told.sentences[1]


def test_levelling_down_is_named(make):
    results = [make(), make("rawlsgcn-graph", "RawlsGCN-Graph", base=0.6, by_degree=0.1)]
    assert "because high-degree nodes lost" in verdict(results).sentences[1]


def test_equal_degrees_have_no_quarters(make, graph_of):
    graph = graph_of()
    ring = torch.arange(graph.num_nodes)
    graph.edge_index = torch.cat(
        [torch.stack([ring, ring.roll(1)]), torch.stack([ring, ring.roll(-1)])], 1
    )
    told = verdict([make(graph=graph)])
    assert told.headline == "Most evaluated nodes have the same degree (2)"


def test_unlabelled_nodes_take_no_part(make, graph_of):
    graph = graph_of()
    graph.y[graph.test_mask.nonzero()[:50, 0]] = -1
    result = make(graph=graph)
    right, quarters = correctness(result), Quarters.of(result)
    assert len(right) == 390
    assert right[quarters.low].mean() == pytest.approx(result.low_degree_accuracy.mean)
    assert right[quarters.high].mean() == pytest.approx(result.high_degree_accuracy.mean)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["between", "paired"]))
def test_an_interval_leaves_zero_out_exactly_where_it_is_called_clear(seed, how):
    rng = np.random.default_rng(seed)
    these, those = rng.normal(rng.normal(), 1, (2, 30)) + rng.normal(0, 0.4, (2, 1))
    difference = getattr(Difference, how)(these, those)
    low, high = difference.points - difference.margin, difference.points + difference.margin
    assert difference.clear == (1 if low > 0 else -1 if high < 0 else 0)
    assert difference.points == pytest.approx(these.mean() - those.mean())


def test_intervals_cover_a_true_difference_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    a, b = rng.normal(3, 10, (1000, 80)), rng.normal(0, 5, (1000, 60))
    found = [Difference.between(x, y) for x, y in zip(a, b, strict=True)]
    covered = np.mean([abs(each.points - 3) <= each.margin for each in found])
    assert 0.92 < covered < 0.97
