"""Tuning: the grid is covered, the choice is by validation, and it equals separate fits."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn.cli import app
from rawlsgcn.experiments.tuning import default_grid, paper_grid
from rawlsgcn.methods import find_method

GRID = {"lr": [0.05, 0.01], "weight_decay": [0.0, 5e-4]}


def test_every_combination_equals_a_fit_of_its_own() -> None:
    graph = rg.synthetic(400)
    tuning = rg.tune(graph, "rawlsgcn-grad", GRID, seeds=2, epochs=5)
    tried = [(t.settings["lr"], t.settings["weight_decay"]) for t in tuning.trials]
    assert tried == [(lr, decay) for lr in GRID["lr"] for decay in GRID["weight_decay"]]
    for trial in tuning.trials:
        lr, decay = trial.settings["lr"], trial.settings["weight_decay"]
        alone = rg.fit(graph, "rawlsgcn-grad", lr=lr, weight_decay=decay, seeds=2, epochs=5)
        torch.testing.assert_close(trial.logits, alone.logits, rtol=1e-3, atol=1e-4)


def test_grids_that_change_the_network_or_its_inputs_work_too() -> None:
    grid = {"hidden_channels": [4, 8], "normalize_features": [True, False], "num_layers": [1, 2]}
    tuning = rg.tune(rg.synthetic(300, classes=2), "gcn", grid, seeds=1, epochs=3)
    assert len(tuning.trials) == 8
    for trial in tuning.trials:
        width = trial.settings["hidden_channels"] if trial.settings["num_layers"] == 2 else 0
        features = trial.graph.x.shape[1]
        expected = features * width + width + width * 2 + 2 if width else features * 2 + 2
        assert trial.parameters == expected


def test_the_choice_is_by_validation_accuracy() -> None:
    tuning = rg.tune(rg.synthetic(400), "gcn", {"lr": [0.05, 1e-5]}, seeds=2, epochs=30)
    best = max(tuning.trials, key=lambda t: t.validation_accuracy.mean)
    assert tuning.best is best
    assert tuning.best.settings["lr"] == 0.05
    on_test = max(tuning.trials, key=lambda t: t.accuracy.mean)
    assert tuning.best_on_test is on_test


RATES = [0.075, 0.05, 0.025, 0.01, 0.0075, 0.005, 0.0025]
DECAYS = [5e-4, 5e-5, 5e-6, 0.0]


def test_rate_and_decay_are_searched_by_default_and_the_papers_grid_by_fixing_the_decay() -> None:
    graph = rg.synthetic(300, classes=2)
    tuning = rg.tune(graph, seeds=1, epochs=1)
    assert tuning.grid == {"lr": RATES, "weight_decay": DECAYS}
    paper = rg.tune(graph, seeds=1, epochs=1, weight_decay=5e-4)
    assert paper.grid == {"lr": RATES}
    assert {trial.settings["weight_decay"] for trial in paper.trials} == {5e-4}


def test_a_method_keeps_its_own_grid_beside_the_decays_and_the_papers_plan_its_old_ones() -> None:
    alphas = {"alpha": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}
    redress = find_method("redress")
    assert paper_grid(redress) == alphas
    assert default_grid(redress) == {**alphas, "weight_decay": tuple(DECAYS)}
    assert default_grid(redress, ["weight-decay"]) == alphas
    assert default_grid(redress, only_rate_and_decay=True) == {
        "lr": tuple(RATES),
        "weight_decay": tuple(DECAYS),
    }
    own = find_method("smoothed-mlp")
    assert default_grid(own) == paper_grid(own) == dict(own.grid)
    assert paper_grid(find_method("rawlsgcn-graph")) == {"lr": tuple(RATES)}


def test_compare_gives_every_method_the_rate_and_decay_that_are_best_on_validation() -> None:
    graph = rg.synthetic(300, classes=2)
    names = ["gcn", "rawlsgcn-graph"]
    results = rg.compare(graph, names, seeds=1, epochs=3, tune=True)
    for name, result in zip(names, results, strict=True):
        best = rg.tune(graph, name, seeds=1, epochs=3).best
        assert torch.equal(result.logits, best.logits)
        assert (result.settings["lr"], result.settings["epochs"]) == (best.settings["lr"], 3)
        assert any("best on the validation nodes of 28" in note for note in result.notes)
    fixed = rg.compare(graph, names, seeds=1, epochs=3, tune=True, lr=0.05)
    assert [result.settings["lr"] for result in fixed] == [0.05, 0.05]
    assert all("of 4 combinations" in " ".join(result.notes) for result in fixed)


def test_the_command_compares_tuned_methods() -> None:
    words = ["compare", "--dataset", "synthetic", "--methods", "gcn", "--epochs", "2", "--tune"]
    result = CliRunner().invoke(app, [*words, "--lr", "0.05", "--seeds", "1", "--json", "-"])
    assert result.exit_code == 0, result.output
    (figures,) = json.loads(result.stdout)
    assert figures["settings"]["weight_decay"] in DECAYS
    assert "weight decay" in result.stderr


def test_wrong_grids_are_refused() -> None:
    graph = rg.synthetic(300, classes=2)
    for grid, words in (
        ({"lr": []}, "no value for lr"),
        ({"lr": 0.1}, "list of values for lr"),
        ({"lr": "0.1"}, "list of values for lr"),
        ([0.1, 0.2], "dict of lists"),
        ({"lr": [0.1, 0.1]}, "same combination twice"),
        ({"lrr": [0.1]}, "did you mean lr"),
        ({"lr": [-1]}, "positive"),
    ):
        with pytest.raises(rg.RawlsError, match=words):
            rg.tune(graph, "gcn", grid, seeds=1, epochs=1)


def test_the_command_writes_trials_and_the_choice(tmp_path) -> None:  # type: ignore[no-untyped-def]
    words = [
        "tune",
        "--dataset",
        "synthetic",
        "--grid",
        "lr=0.05,0.01",
        "--grid",
        "hidden_channels=4,8",
    ]
    options = ["--set", "epochs=3", "--seeds", "2", "--json", "-", "--out", str(tmp_path / "m")]
    result = CliRunner().invoke(app, [*words, *options])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["grid"] == {"lr": [0.05, 0.01], "hidden_channels": [4, 8]}
    assert figures["runs"] == 8
    assert len(figures["trials"]) == 4
    assert figures["best"] in figures["trials"]
    names = {"model.safetensors", "config.json", "metrics.json", "tuning.json"}
    assert {path.name for path in (tmp_path / "m").iterdir()} == names
    assert (
        rg.load_model(tmp_path / "m").settings.hidden_channels
        == figures["best"]["settings"]["hidden_channels"]
    )
    bad = CliRunner().invoke(app, ["tune", "--dataset", "synthetic", "--grid", "lr=fast"])
    assert bad.exit_code == 2
    assert "--grid lr=fast: lr must be a number" in bad.stderr
    for wrong, said in (("lr", "--grid takes name=a,b,c"), ("lrr=1", "--grid lrr=1: unknown")):
        bad = CliRunner().invoke(app, ["tune", "--dataset", "synthetic", "--grid", wrong])
        assert bad.exit_code == 2
        assert said in bad.stderr
        assert "--set" not in bad.stderr
