"""The terminal tables of an audit tell models apart and show their metrics."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rawlsgcn.reporting.audit_tables import audit_table, short_names
from rawlsgcn.reporting.formatting import number

FILES = ["predictions-gcn", "predictions-rawlsgcn-graph", "predictions-rawlsgcn-grad"]


def lines(table, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()


def test_models_of_similar_names_are_told_apart_in_80_columns(make_audit) -> None:
    shown = lines(audit_table(make_audit(dict.fromkeys(FILES, (0.2, 0.9)))), 80)
    assert max(map(len, shown)) <= 80
    headings = [line.split() for line in shown if "rawlsgcn-graph" in line]
    assert headings == [["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]] * 2
    assert "…" not in "".join(shown)


def test_a_long_name_is_folded_and_not_cut(make_audit) -> None:
    names = {f"{letter * 40}": (0.2, 0.9) for letter in "xyz"}
    shown = "".join(lines(audit_table(make_audit(names)), 80))
    assert "…" not in shown
    assert shown.count("x") == 80  # forty in each of the two tables


def test_only_words_that_all_share_are_left_out() -> None:
    assert short_names(FILES) == ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]
    assert short_names(["run 1 of the model", "run 2 of the model"]) == ["1", "2"]
    assert short_names(["gcn", "gat"]) == ["gcn", "gat"]  # short enough as they are
    assert short_names(["a long name of a model", "a long name"]) == ["name of a model", "name"]
    assert short_names(["a long name of a model"]) == ["a long name of a model"]


@given(st.lists(st.text("ab-_ ", max_size=40), max_size=4, unique=True))
def test_different_names_stay_different(names: list[str]) -> None:
    short = short_names(names)
    assert len(set(short)) == len(names)


def test_an_audit_shows_the_metrics_of_each_model(three_models) -> None:
    shown = lines(audit_table(three_models), 120)
    (row,) = (line for line in shown if "loss per doubling" in line)
    assert row.count("[") == 3
    (row,) = (line for line in shown if "bias, calibrated" in line)
    for model in three_models.models:
        assert number(model.scaling.calibrated_bias) in row
