"""What ``auto`` returns, as text, as plain values and beside other results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from small_pool import small_pool

import rawlsgcn as rg
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.experiments.model_search.result import AutoResult


@pytest.fixture(scope="module")
def best() -> Iterator[AutoResult]:
    with small_pool():
        yield rg.auto(rg.synthetic(300))


def test_the_settings_are_those_of_the_runs(best: AutoResult) -> None:
    shown = best.described_settings
    assert shown["members"] == "; ".join(best.chosen)
    assert shown["epochs"] == "30"
    assert shown["lr"] == "0.05"
    assert not any("{" in str(value) for value in shown.values())
    assert best.baseline is not None
    assert best.baseline.described_settings["runs"].endswith(" of gcn")


def test_plain_values_have_the_runs_and_no_setting_that_nothing_uses(best: AutoResult) -> None:
    for figures in (best.to_dict(), best.to_dict()["baseline"]):
        assert not {"lr", "epochs", "normalization"} & set(figures)
        runs = figures["settings"]["runs"]
        assert sum(run["weight"] for run in runs) == pytest.approx(1)
        assert {run["settings"]["epochs"] for run in runs} <= {30, 200}


def test_results_of_the_same_title_are_numbered(best: AutoResult) -> None:
    other = replace(best, settings=best.settings | {"temperature": 2.0})
    assert Comparison([best, other]).names == ["Auto #1", "Auto #2"]
    assert best.comparison().names == ["Auto", "Tuned GCN"]


def test_printed_it_says_what_was_chosen_and_beside_what(best: AutoResult) -> None:
    lines = str(best).splitlines()
    assert lines[0].startswith("Auto on synthetic: accuracy ")
    assert lines[1].startswith("Tuned GCN on synthetic: accuracy ")
    assert lines[2:] == best.explanation


def test_the_seconds_of_the_gcn_are_its_own(best: AutoResult) -> None:
    assert best.baseline is not None
    assert best.baseline.seconds["train"] > 0
    assert best.seconds["train"] >= best.leaderboard["seconds"].sum()


def test_the_audit_compares_with_the_tuned_gcn(best: AutoResult) -> None:
    audit = best.audit(resamples=100)
    assert [model.name for model in audit.models] == ["Auto", "Tuned GCN"]
    assert len(rg.audit(best.graph, best, resamples=100).models) == 1
