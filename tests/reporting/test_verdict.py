"""The verdict says what the numbers say, in either direction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.reporting.accuracy_bias_plot import plane
from rawlsgcn.reporting.notebook import results_html
from rawlsgcn.reporting.page import render
from rawlsgcn.reporting.table import results_table
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


def without_learning(result):
    """The same result, but for every node the same class, as a GCN of a bad learning rate has."""
    logits = torch.zeros_like(result.logits)
    logits[..., 1] = 0.01
    degree, graph = result.degree, result.graph
    judgements = [
        evaluate_run(run, graph.y, degree, graph.test_mask, graph.val_mask) for run in logits
    ]
    return replace(result, logits=logits, judgements=judgements)


def test_nothing_is_held_against_a_gcn_that_has_not_learned(three):
    """The page once said that RawlsGCN-Graph serves low degrees better than such a GCN."""
    results = [without_learning(three[0]), *three[1:]]
    told = verdict(results)
    assert told.headline == "GCN has not learned, so nothing is compared with it"
    assert told.sentences[0].startswith("GCN has not learned: training accuracy")
    assert not any("over GCN" in line or "against GCN" in line for line in told.sentences)
    assert any(line.startswith("With RawlsGCN-Graph, nodes with") for line in told.sentences)
    assert verdict(results[:1]).headline == "GCN has not learned"


def test_a_method_that_has_not_learned_is_left_out_of_the_comparison(three):
    told = verdict([three[0], without_learning(three[1]), three[2]])
    assert told.headline == "RawlsGCN-Grad serves low-degree nodes better than GCN"
    assert any(line.startswith("RawlsGCN-Graph has not learned") for line in told.sentences)
    assert not any(line.startswith("With RawlsGCN-Graph") for line in told.sentences)
    alone = verdict([three[0], without_learning(three[1])])
    assert alone.headline == "With GCN, low-degree nodes are worse off"


def test_what_has_not_learned_is_nowhere_the_best(three):
    """A constant answer has no bias at all: neither table, nor page, nor plane may praise it."""
    blurred = without_learning(three[1])
    assert blurred.bias.mean < min(three[0].bias.mean, three[2].bias.mean)
    results = [three[0], blurred, three[2]]
    page = render(results)
    row = next(line for line in page.splitlines() if "RawlsGCN-Graph" in line and "<td>" in line)
    assert "has not learned" in row
    assert "<strong>" not in row
    assert "without RawlsGCN-Graph, which has not learned" in page
    assert "RawlsGCN-Graph has the least bias" not in page
    (line,) = [line for line in plane(results).axes[0].get_lines() if line.get_label() == "_front"]
    assert len(line.get_xdata()) <= 2
    table = results_table(results)
    cells = [list(column.cells) for column in table.columns]
    assert cells[0][1].plain == "RawlsGCN-Graph (has not learned)"
    assert not any(getattr(column[1], "style", "") for column in cells)
    assert "has not learned" in results_html(results)
