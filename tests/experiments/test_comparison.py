"""Results as tables, and several results as one comparison."""

from __future__ import annotations

import math

import pytest
import torch

import rawlsgcn as rg
from rawlsgcn.experiments.comparison import Comparison


@pytest.fixture(scope="module")
def results() -> Comparison:
    return rg.compare(rg.synthetic(300, classes=2), ["gcn", "rawlsgcn-graph"], seeds=2, epochs=20)


def test_a_result_has_one_row_for_each_run(results: Comparison) -> None:
    result = results[0]
    frame = result.to_frame()
    assert list(frame["seed"]) == result.seeds
    for metric in (
        "accuracy",
        "bias",
        "calibrated_bias",
        "low_degree_accuracy",
        "high_degree_accuracy",
        "validation_accuracy",
        "training_accuracy",
    ):
        assert list(frame[metric]) == pytest.approx(getattr(result, metric).runs, nan_ok=True)
    assert not frame["diverged"].any()
    assert list(frame["learned"]) == [seed not in result.not_learned for seed in result.seeds]


def test_a_diverged_run_is_marked_in_its_row(results: Comparison) -> None:
    graph = results[0].graph
    result = rg.fit(graph, "gcn", seeds=1, epochs=3, lr=1e30)
    (row,) = result.to_frame().to_dict("records")
    assert row["diverged"]
    assert not row["learned"]
    assert math.isnan(row["accuracy"])


def test_a_comparison_has_the_rows_of_all_methods(results: Comparison) -> None:
    frame = results.to_frame()
    assert list(frame.columns)[:2] == ["method", "seed"]
    assert list(frame["method"]) == 2 * ["GCN"] + 2 * ["RawlsGCN-Graph"]
    means = frame.groupby("method")["accuracy"].mean()
    for name, result in zip(results.names, results, strict=True):
        assert means[name] == pytest.approx(result.accuracy.mean)


def test_methods_of_one_title_are_named_by_the_settings_that_differ(results: Comparison) -> None:
    graph = results[0].graph
    other = rg.fit(graph, "gcn", seeds=1, epochs=3)
    same = rg.fit(graph, "gcn", seeds=1, epochs=3)
    assert Comparison([results[0], other]).names == ["GCN (epochs 20)", "GCN (epochs 3)"]
    assert Comparison([other, same]).names == ["GCN #1", "GCN #2"]


def test_an_audit_keeps_its_results_and_their_names(results: Comparison) -> None:
    audit = results.audit(resamples=100)
    assert [model.name for model in audit.models] == results.names
    assert list(audit.results.values()) == list(results)
    best = results[0].logits[results[0].best_run]
    right = (best.argmax(-1) == results[0].graph.y)[results[0].mask].float().mean()
    assert audit.models[0].accuracy.value == pytest.approx(100 * float(right))
    assert set(audit.to_dict()["results"]) == set(results.names)


def test_an_audit_has_one_row_for_each_model_and_group(results: Comparison) -> None:
    audit = results.audit(resamples=100)
    frame = audit.to_frame()
    assert len(frame) == sum(len(model.groups) for model in audit.models)
    first = audit.models[0].groups[0]
    assert frame["group"][0] == first.label
    assert frame["accuracy"][0] == first.accuracy.value
    assert frame["loss_high"][0] == first.loss.high


def test_results_of_different_nodes_are_refused(results: Comparison) -> None:
    graph = results[0].graph.clone()
    graph.test_mask, graph.val_mask = graph.val_mask, graph.test_mask
    other = rg.fit(graph, "gcn", seeds=1, epochs=3)
    assert not torch.equal(other.mask, results[0].mask)
    with pytest.raises(rg.RawlsError, match="same split"):
        Comparison.of([results[0], other])
