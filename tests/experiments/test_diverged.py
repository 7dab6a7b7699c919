"""A run that ended in NaN or infinity is never chosen, has no figures, and says so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn.cli import app
from rawlsgcn.methods import Inputs, Learner, find_method, method_names, with_changes
from rawlsgcn.methods.base import accuracy_of
from rawlsgcn.reporting.tables import results_table, tuning_table
from rawlsgcn.training import Job, TrainedRun
from rawlsgcn.training.reference import BestEpoch


@pytest.fixture(scope="module")
def graph() -> Data:
    """All validation nodes are of class 0, which is what torch takes a row of NaN for."""
    graph = rg.synthetic(300, classes=3, features=40)
    graph.val_mask &= graph.y == 0
    return graph


def shown(table: object) -> str:
    from rich.console import Console

    console = Console(width=120, record=True)
    console.print(table)
    return console.export_text()


def some_runs(graph: Data, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Job], bool]) -> None:
    """Let training spoil a weight of the runs that ``spoil`` names."""
    from rawlsgcn.experiments import fitting as api

    def train_runs(method: Any, inputs: Any, jobs: list[Job], **how: Any) -> Any:
        runs, seconds = original(method, inputs, jobs, **how)
        each = zip(runs, jobs, strict=True)
        return [_spoiled(run) if spoil(job) else run for run, job in each], seconds

    original = api.train_runs
    monkeypatch.setattr(api, "train_runs", train_runs)


def _spoiled(run: TrainedRun) -> TrainedRun:
    state = {name: tensor.clone() for name, tensor in run.state.items()}
    next(iter(state.values())).view(-1)[0] = math.nan
    return TrainedRun(run.parameters, state, run.logits)


@pytest.mark.parametrize("name", method_names())
def test_tune_never_chooses_a_rate_that_diverges(name: str, graph: Data) -> None:
    tuning = rg.tune(graph, name, {"lr": [1e30, 1e-6]}, seeds=1, epochs=3)
    bad, good = tuning.trials
    assert bad.diverged == [0]
    assert good.diverged == []
    assert tuning.best is good
    assert tuning.best_on_test is good
    assert math.isnan(bad.accuracy.mean)
    assert math.isnan(bad.validation_accuracy.mean)
    assert math.isnan(bad.training_accuracy.mean)
    assert math.isnan(bad.bias.mean)
    assert bad.to_dict()["accuracy"]["mean"] is None
    assert bad.to_dict()["diverged"] == [0]


@pytest.mark.parametrize("name", method_names())
def test_where_every_run_diverged_the_error_names_the_rate(
    name: str, graph: Data, tmp_path: Path
) -> None:
    tuning = rg.tune(graph, name, {"lr": [1e30, 1e29]}, seeds=1, epochs=3)
    with pytest.raises(rg.RawlsError, match=r"lower learning rates \(lr\)"):
        tuning.best  # noqa: B018
    (result, _) = tuning.trials
    for ask in (
        lambda: result.best_run,
        result.probabilities,
        lambda: result.save(tmp_path / "model"),
        lambda: result.to_predictions(tmp_path / "predictions.csv"),
        result.audit,
    ):
        with pytest.raises(rg.RawlsError, match=r"every run of .* diverged.*learning rate \(lr\)"):
            ask()
    assert not list(tmp_path.iterdir())
    with pytest.raises(rg.RawlsError, match="run 0 diverged"):
        result.probabilities(0)


@pytest.mark.parametrize("kind", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["weights", "scores"])
def test_one_number_that_is_not_finite_makes_a_run_diverged(where: str, kind: float) -> None:
    state, logits = {"w": torch.zeros(3), "degrees": torch.tensor([1, 2])}, torch.zeros(4, 2)
    assert TrainedRun(3, state, logits).logits.isfinite().all()
    (state["w"] if where == "weights" else logits[1])[1] = kind
    assert TrainedRun(3, state, logits).logits.isnan().all()


def test_the_best_run_is_the_best_of_those_that_did_not_diverge(
    graph: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = rg.fit(graph, "gcn", seeds=3, epochs=30)
    some_runs(graph, monkeypatch, lambda job: job.seed == whole.seeds[whole.best_run])
    result = rg.fit(graph, "gcn", seeds=3, epochs=30)
    assert result.diverged == [whole.best_run]
    runs = [run for run in range(3) if run != whole.best_run]
    best = max(runs, key=lambda run: whole.validation_accuracy.runs[run])
    assert result.best_run == best
    assert math.isnan(result.accuracy.mean)
    assert result.accuracy.runs[best] == whole.accuracy.runs[best]
    assert any(f"diverged (seed {whole.best_run})" in note for note in result.notes)
    assert "diverged" in str(result)
    assert "diverged" in shown(results_table([result, whole]))
    result.save(tmp_path)
    assert rg.load_model(tmp_path).seed == best
    with pytest.raises(rg.RawlsError, match=r"NaN or infinite.*diverged"):
        rg.load_model(tmp_path, seed=whole.best_run)


def test_a_setting_with_one_diverged_run_is_not_chosen_and_is_marked(
    graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_runs(graph, monkeypatch, lambda job: job.settings.lr == 0.05 and job.seed == 1)
    tuning = rg.tune(graph, "gcn", {"lr": [0.05, 1e-6]}, seeds=2, epochs=30)
    assert tuning.best.settings["lr"] == 1e-6
    assert "diverged" in shown(tuning_table(tuning))


class Scripted(Learner):
    """A learner whose weights and validation score are given for each epoch."""

    def __init__(self, weights: list[float], scores: list[float]) -> None:
        self.weights, self.scores, self.at = weights, scores, -1
        self.module = torch.nn.Linear(1, 1, bias=False)

    def epoch(self) -> float:
        self.at += 1
        self.module.weight.data.fill_(self.weights[self.at])
        return 0.0

    def logits(self) -> Tensor:
        raise NotImplementedError

    def validation_score(self) -> float:
        return self.scores[self.at]


def test_early_stopping_never_keeps_weights_that_are_not_numbers() -> None:
    learner = Scripted([1.0, math.nan, math.inf, 2.0], [0.3, 0.9, 0.8, math.nan])
    best = BestEpoch(learner.module)
    for _ in range(4):
        learner.epoch()
        best.compare(learner.module, learner.validation_score())
    assert best.network.weight.item() == 1.0


@pytest.mark.parametrize("name", method_names())
def test_early_stopping_scores_a_diverged_epoch_as_nothing(name: str, graph: Data) -> None:
    settings = with_changes(find_method(name).defaults, {"lr": 1e30, "patience": 5})
    learner = find_method(name).learner(Inputs.of(graph), settings, 0)
    assert learner.validation_score() >= 0
    for _ in range(3):
        learner.epoch()
    assert math.isnan(learner.validation_score())


def test_the_accuracy_of_scores_that_are_not_numbers_is_none() -> None:
    scores, y = torch.eye(3), torch.tensor([0, 1, 1])
    assert accuracy_of(scores, y) == pytest.approx(2 / 3)
    scores[2, 2] = math.nan
    assert math.isnan(accuracy_of(scores, y))


@pytest.mark.slow
def test_the_commands_tell_of_divergence(tmp_path: Path) -> None:
    def call(*words: object) -> Any:
        quick = ["--dataset", "synthetic", "--seeds", "1"]
        return CliRunner().invoke(app, [*map(str, words), *quick])

    done = call("train", "--method", "gcn", "--lr", 1e30, "--epochs", 3)
    assert done.exit_code == 0, done.output
    assert "GCN (diverged)" in done.output
    done = call("train", "--method", "gcn", "--lr", 1e30, "--epochs", 3, "--out", tmp_path / "a")
    assert done.exit_code == 2
    assert "lower learning rate" in done.stderr
    assert not (tmp_path / "a").exists()
    done = call("tune", "--method", "gcn", "--grid", "lr=1e30,1e29", "--set", "epochs=3")
    assert done.exit_code == 2
    assert "lower learning rates (lr)" in done.stderr
    names = "gcn,rawlsgcn-graph"
    options = ["--methods", names, "--epochs", 3, "--lr", 1e30, "--out", tmp_path / "b"]
    done = call("compare", *options)
    assert done.exit_code == 0, done.output
    assert "RawlsGCN-Graph: training diverged" in " ".join(done.output.split())
    assert {path.name for path in (tmp_path / "b").glob("predictions*")} == set()
    assert json.loads((tmp_path / "b" / "results.json").read_text())[0]["accuracy"]["mean"] is None
    assert "diverged" in (tmp_path / "b" / "report.html").read_text()


def test_predictions_that_are_not_numbers_are_refused(graph: Data, tmp_path: Path) -> None:
    rg.fit(graph, "gcn", seeds=1, epochs=3, normalize_features=False).save(tmp_path)
    huge = graph.clone()
    huge.x = graph.x.to_dense() * 3e38
    with pytest.raises(rg.RawlsError, match="not all finite numbers"):
        rg.load_model(tmp_path).predict(huge)
