"""What is said of trained results: in either direction, and never on one that has not learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting.audit_verdict import Verdict, headline_model, verdict
from rawlsgcn.reporting.figures import accuracy_bias_plot
from rawlsgcn.reporting.notebook import results_html
from rawlsgcn.reporting.page import render
from rawlsgcn.reporting.tables import results_table


def said(*results) -> Verdict:
    return verdict(Comparison.of(results).audit(resamples=100))


def test_low_degrees_worse_off_with_the_audits_own_numbers(make) -> None:
    result = make()
    audit = result.audit(resamples=100)
    low = audit.models[0].low
    words = verdict(audit)
    assert f"at most {low.at_most:.0f} neighbors" in words.headline
    assert f"wrong {low.ratio.value:.1f} times as often as the rest" in words.headline
    assert words.comparison is None
    best = result.accuracy.runs[result.best_run]
    assert words.sentences[0].startswith(f"GCN is right on {best:.1f} % of 440 nodes")


def test_low_degrees_better_off(make) -> None:
    assert "are wrong less often than the rest" in said(make(base=4, by_degree=-1.2)).headline


def test_no_gap_is_called_no_gap(make) -> None:
    headline = said(make(base=1.5, by_degree=0)).headline
    assert "the difference is not significant: it may be chance" in headline
    assert "as often" not in headline


def test_methods_that_help(three) -> None:
    words = said(*three)
    assert words.headline.startswith("With GCN, nodes with at most")
    assert words.comparison == (
        "RawlsGCN-Graph and RawlsGCN-Grad serve low-degree nodes better than GCN."
    )
    audit = Comparison.of(three).audit(resamples=100)
    gain = audit.comparisons[0].low_accuracy.value
    assert any(
        f"right {abs(gain):.1f} points more often with RawlsGCN-Graph than with GCN" in line
        for line in words.sentences
    )


def test_the_gcn_is_the_reference_wherever_it_is(three) -> None:
    assert said(*three[::-1]).comparison.endswith("than GCN.")


def test_a_method_that_harms(make) -> None:
    words = said(make(base=2), make("rawlsgcn-graph", "RawlsGCN-Graph", base=0.5))
    assert words.comparison == "RawlsGCN-Graph serves low-degree nodes worse than GCN."


def test_a_method_that_changes_nothing(make) -> None:
    words = said(make(), make("rawlsgcn-graph", "RawlsGCN-Graph"))
    assert words.comparison.startswith("RawlsGCN-Graph makes no clear difference")


@pytest.mark.parametrize(
    ("base", "how"),
    [
        (1.1, " because the rest lost accuracy; low-degree nodes do not clearly gain."),
        (0.6, ", but both lose accuracy with it."),
    ],
)
def test_leveling_down_is_named(make, base, how) -> None:
    words = said(make(), make("rawlsgcn-graph", "RawlsGCN-Graph", base=base, by_degree=0.1))
    assert any(f"smaller with RawlsGCN-Graph{how}" in line for line in words.sentences)


def test_nodes_of_one_degree_are_not_compared(make, graph_of) -> None:
    graph = graph_of()
    ring = torch.arange(graph.num_nodes)
    graph.edge_index = torch.cat(
        [torch.stack([ring, ring.roll(1)]), torch.stack([ring, ring.roll(-1)])], 1
    )
    words = said(make(graph=graph, base=2.0))
    assert words.headline.startswith("All evaluated nodes have the same degree (2)")
    assert words.comparison is None


def without_learning(result):
    """The same result, but with one class for all nodes, as from a bad learning rate."""
    logits = torch.zeros_like(result.logits)
    logits[..., 1] = 0.01
    degree, graph = result.degree, result.graph
    metrics = [
        evaluate_run(run, graph.y, degree, graph.test_mask, graph.val_mask) for run in logits
    ]
    return replace(result, logits=logits, run_metrics=metrics)


def diverged(result, runs: int):
    """The same result with its first runs not a number."""
    logits = result.logits.clone()
    logits[:runs] = torch.nan
    return replace(result, logits=logits)


def test_nothing_is_compared_with_a_gcn_that_has_not_learned(three) -> None:
    """The page once said that RawlsGCN-Graph serves low degrees better than such a GCN."""
    failed = without_learning(three[0])
    words = said(failed, *three[1:])
    assert words.headline.startswith("With RawlsGCN-Graph, nodes with")
    assert words.sentences[0].startswith("GCN has not learned: training accuracy")
    assert "No headline and no comparison uses it" in words.sentences[0]
    assert not any("than GCN" in line or "with GCN" in line for line in words.lines)
    assert said(failed).headline == "GCN has not learned"


def test_a_method_that_has_not_learned_is_left_out_of_the_comparison(three) -> None:
    words = said(three[0], without_learning(three[1]), three[2])
    assert words.comparison == "RawlsGCN-Grad serves low-degree nodes better than GCN."
    assert any(line.startswith("RawlsGCN-Graph has not learned") for line in words.sentences)
    assert said(three[0], without_learning(three[1])).comparison is None


@pytest.mark.parametrize("runs", [1, 3])
def test_nothing_is_built_on_a_method_that_diverged(three, runs) -> None:
    """With one diverged run of three its means mean nothing; with all there is no run to audit."""
    results = Comparison.of([diverged(three[0], runs), *three[1:]])
    audit = results.audit(resamples=100)
    assert len(audit.models) == (2 if runs == 3 else 3)
    assert list(audit.results) == [result.title for result in three]
    assert headline_model(audit).name == "RawlsGCN-Graph"
    words = verdict(audit)
    assert any(line.startswith("GCN: training diverged (seed") for line in words.sentences)
    assert not any("than GCN" in line or "with GCN" in line for line in words.lines)
    page = render(results)
    assert "GCN: training diverged" in page
    assert '<span class="tag">diverged</span>' in page


def test_a_report_of_diverged_runs_only_says_so(three) -> None:
    page = render([diverged(three[0], 3), diverged(three[1], 3)], command="rawlsgcn compare")
    assert "Training diverged in every run" in page
    assert "RawlsGCN-Graph: training diverged" in page
    assert "<code>rawlsgcn compare</code>" in page


def test_what_has_not_learned_is_nowhere_the_best(three) -> None:
    """A constant prediction has no bias at all: no table, page or plot may praise it."""
    constant = without_learning(three[1])
    assert constant.bias.mean < min(three[0].bias.mean, three[2].bias.mean)
    results = [three[0], constant, three[2]]
    page = render(results)
    rows = [line for line in page.splitlines() if 'scope="row">RawlsGCN-Graph' in line]
    assert "has not learned" in rows[0]
    assert not any("<strong>" in row for row in rows)
    assert "without RawlsGCN-Graph, which has not learned" in page
    assert "RawlsGCN-Graph has the least bias" not in page
    front = [
        line
        for line in accuracy_bias_plot(results).axes[0].get_lines()
        if line.get_label() == "_front"
    ]
    assert len(front[0].get_xdata()) <= 2
    cells = [list(column.cells) for column in results_table(results).columns]
    assert cells[0][1].plain == "RawlsGCN-Graph (has not learned)"
    assert not any(getattr(column[1], "style", "") for column in cells)
    assert "has not learned" in results_html(results)
