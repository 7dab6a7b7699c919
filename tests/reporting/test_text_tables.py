"""What ``repr`` shows: one short table that fits a terminal, true and on few lines."""

from __future__ import annotations

from dataclasses import replace

import torch

import rawlsgcn as rg
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting.formatting import number, percent


def is_short(text: str, most: int) -> None:
    lines = text.splitlines()
    assert 2 < len(lines) <= most or text.startswith("Scaling")
    assert max(map(len, lines)) <= 100
    assert "tensor(" not in text


def test_a_result_and_a_comparison(make, three) -> None:
    result = make()
    text = repr(result)
    is_short(text, 3)
    head, columns, row = text.splitlines()
    assert head.startswith("amazon-photo: 600 nodes (60 training, 100 validation, 440 evaluated)")
    assert row.split()[0] == "GCN"
    assert percent(result.accuracy.mean) in row
    assert number(result.calibrated_bias.mean) == row.split()[-1]
    assert len(columns) == len(row)
    whole = repr(Comparison(three))
    is_short(whole, 5)
    assert [line.split()[0] for line in whole.splitlines()[2:]] == Comparison(three).names
    assert str(Comparison(three)) == whole
    assert repr(Comparison()) == "Comparison of no results"


def test_a_result_with_a_hostile_title_stays_on_its_line(make) -> None:
    assert len(repr(make(title="a\nb\x1b[2J")).splitlines()) == 3
    assert "\x1b" not in repr(make(title="a\nb\x1b[2J"))


def test_a_result_of_auto_is_shown_beside_the_gcn(auto) -> None:
    assert repr(auto) == repr(auto.comparison())


def test_a_tuning_shows_its_best_trials() -> None:
    graph = rg.synthetic(300, classes=2)
    tuning = rg.tune(graph, "gcn", {"lr": [0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]}, seeds=1, epochs=5)
    text = repr(tuning)
    is_short(text, 8)
    lines = text.splitlines()
    assert lines[0] == "GCN on synthetic graph: 6 combinations of 1 seed, best first"
    assert lines[2].split()[0] == str(tuning.best.settings["lr"])
    assert lines[-1] == "… 1 more in tuning.trials"
    html = tuning._repr_html_()
    assert html.count("<tr>") == 7
    assert html.count("→") == 2  # the chosen trial, and the line that explains it


def test_an_audit_shows_a_row_for_each_model(three_models) -> None:
    text = repr(three_models)
    is_short(text, 5)
    lines = text.splitlines()
    assert lines[0].startswith("Audit by degree of 440 nodes of ")
    for model, line in zip(three_models.models, lines[2:], strict=True):
        assert line.startswith(model.name)
        assert number(model.bias) in line
    many = replace(three_models, models=three_models.models * 3)
    assert repr(many).splitlines()[-1] == "… 4 more in audit.models"


def test_a_scaling_is_one_line_and_a_table_in_a_notebook() -> None:
    graph = rg.synthetic(300)
    scaling = rg.balance(graph.edge_index, num_nodes=300)
    assert repr(scaling).startswith("Scaling of 300 nodes, one vector: residual ")
    assert "\n" not in repr(scaling)
    html = scaling._repr_html_()
    assert f"{scaling.residual:.1e}" in html
    assert f"{float(scaling.scale.min()):.3g} to " in html
    directed = rg.balance(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to_sparse())
    assert "rows and columns" in repr(directed)
    assert "scaling of columns" in directed._repr_html_()
