"""A weight decay that keeps a model from fitting is noted, and no other; no figure changes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core.random_state import random_state
from rawlsgcn.cli import app
from rawlsgcn.experiments import weight_decay_check
from rawlsgcn.methods import Inputs, find_method

OPTION = "--set weight_decay=5e-6"


def dense_features(chance: float, classes: int = 8, noise: bool = False) -> Data:
    """A graph with about 150 features in every row, so that each is small once rows are normalized.

    A feature that is typical of a node's class is in its row with the given chance, others with
    0.45. With ``noise`` the labels have nothing to do with features and edges.
    """
    rng = np.random.default_rng(0)
    nodes, features = 240, 300
    y = np.arange(nodes) % classes
    typical = rng.random((classes, features)) < 0.3
    x = rng.random((nodes, features)) < np.where(typical[y], chance, 0.45)
    start = np.repeat(np.arange(nodes), 3)
    alike = rng.integers(0, nodes // classes, len(start)) * classes + y[start]
    end = np.where(rng.random(len(start)) < 0.7, alike, rng.integers(0, nodes, len(start)))
    part = rng.permutation(nodes) % 3
    masks = {f"{name}_mask": part == i for i, name in enumerate(("train", "val", "test"))}
    arrays = {
        "x": x.astype(np.float32),
        "y": rng.permutation(y) if noise else y,
        "edge_index": np.stack([np.r_[start, end], np.r_[end, start]]),
        **masks,
    }
    return Data(**{name: torch.from_numpy(array) for name, array in arrays.items()})


@pytest.fixture(scope="module")
def trap() -> Data:
    return dense_features(0.57)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that checks train, which are counted here."""
    jobs: list[Any] = []
    plain = weight_decay_check.train_runs

    def counted(method: Any, inputs: Any, each: Any, **options: Any) -> Any:
        jobs.extend(each)
        return plain(method, inputs, each, **options)

    monkeypatch.setattr(weight_decay_check, "train_runs", counted)
    return jobs


def decay_notes(result: rg.Result) -> list[str]:
    return [note for note in result.notes if "weight decay" in note]


@pytest.mark.parametrize("method", ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"])
def test_the_note_names_what_less_decay_gives_and_the_option(method: str, trap: Data) -> None:
    result = rg.fit(trap, method, seeds=1)
    (note,) = decay_notes(result)
    assert result.title in note
    assert OPTION in note
    advised = rg.fit(trap, method, seeds=1, weight_decay=5e-6)
    assert not decay_notes(advised)
    said = [int(number) for number in re.findall(r"(\d+) %", note)]
    spreads = [(each.training_accuracy, each.validation_accuracy) for each in (result, advised)]
    assert said == [round(each[kind].mean) for kind in (0, 1) for each in spreads]
    assert said[1] > said[0] + 20
    assert said[3] > said[2] + 20


def test_the_seed_of_the_median_run_is_compared(trap: Data, probes: list[Any]) -> None:
    result = rg.fit(trap, "gcn", seeds=3, epochs=60)
    (job,) = probes
    accuracies = dict(zip(result.seeds, result.training_accuracy.runs, strict=True))
    assert accuracies[job.seed] == sorted(accuracies.values())[1]
    assert job.settings == replace(find_method("gcn").configure({"epochs": 60}), weight_decay=5e-6)


def test_a_model_that_fits_costs_nothing(probes: list[Any]) -> None:
    result = rg.fit(dense_features(1.0), "gcn", seeds=1)
    assert result.training_accuracy.mean >= weight_decay_check.FITTED
    assert not probes
    assert not decay_notes(result)


def test_without_weight_decay_nothing_is_trained(trap: Data, probes: list[Any]) -> None:
    assert not decay_notes(rg.fit(trap, "gcn", seeds=1, epochs=3, weight_decay=0.0))
    assert not probes


def test_fitting_noise_better_is_no_reason(probes: list[Any]) -> None:
    """Less decay learns random labels by heart, and validation accuracy stays at chance."""
    noise = dense_features(0.6, noise=True)
    result = rg.fit(noise, "gcn", seeds=1, lr=0.05)
    less = rg.fit(noise, "gcn", seeds=1, lr=0.05, weight_decay=5e-6, check_weight_decay=False)
    assert less.training_accuracy.mean > result.training_accuracy.mean + 20
    assert len(probes) == 1
    assert not decay_notes(result)


def test_few_epochs_are_not_blamed_on_the_decay(trap: Data, probes: list[Any]) -> None:
    assert not decay_notes(rg.fit(trap, "gcn", seeds=1, epochs=3))
    assert len(probes) == 1


def test_a_run_that_diverged_is_not_checked(trap: Data, probes: list[Any]) -> None:
    assert not decay_notes(rg.fit(trap, "gcn", seeds=1, epochs=3, lr=1e30))
    assert not probes


@pytest.mark.parametrize("engine", ["stacked", "reference"])
def test_no_figure_no_time_and_no_random_state_changes(
    engine: str, trap: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"seeds": 2, "epochs": 60, "lr": 0.03, "engine": engine}
    plain = rg.fit(trap, "gcn", check_weight_decay=False, **options)
    train_runs = weight_decay_check.train_runs

    def long(*words: Any, **keywords: Any) -> Any:
        runs, seconds = train_runs(*words, **keywords)
        return runs, dict.fromkeys(seconds, 1e9)

    monkeypatch.setattr(weight_decay_check, "train_runs", long)
    before = random_state()
    checked = rg.fit(trap, "gcn", **options)
    assert random_state() == before
    assert decay_notes(checked)
    assert not decay_notes(plain)
    assert torch.equal(checked.logits, plain.logits)
    costs = ("seconds", "peak_memory_mb", "notes")
    figures = [
        {name: value for name, value in each.to_dict().items() if name not in costs}
        for each in (checked, plain)
    ]
    assert figures[0] == figures[1]
    assert sum(checked.seconds.values()) < 1e6


def test_compare_checks_each_method(trap: Data, probes: list[Any]) -> None:
    results = rg.compare(trap, ["gcn", "rawlsgcn-graph"], seeds=1, epochs=60, lr=0.02)
    assert [len(decay_notes(result)) for result in results] == [1, 1]
    assert len(probes) == 2


def test_tune_checks_only_the_best_trial(trap: Data, probes: list[Any]) -> None:
    tuning = rg.tune(trap, "gcn", {"lr": [0.01, 0.02]}, seeds=1, epochs=60)
    assert len(probes) == 1
    assert [len(decay_notes(trial)) for trial in tuning.trials] == [
        int(trial is tuning.best) for trial in tuning.trials
    ]


def test_tune_with_a_grid_of_decays_trains_nothing_more(trap: Data, probes: list[Any]) -> None:
    tuning = rg.tune(trap, "gcn", {"weight-decay": [5e-4, 1e-3]}, seeds=1, epochs=20)
    assert not any(decay_notes(trial) for trial in tuning.trials)
    assert not probes


def test_tune_of_runs_that_all_diverged_is_not_checked(trap: Data, probes: list[Any]) -> None:
    rg.tune(trap, "gcn", {"lr": [1e30, 2e30]}, seeds=1, epochs=3)
    assert not probes


def test_reproduce_trains_what_the_paper_did_and_nothing_more(
    tmp_path: Path, probes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    from rawlsgcn.paper import figures, plan, reproduction, significance

    monkeypatch.setattr(figures, "save", lambda figure, path: None)
    quick = plan.Plan(
        parts=("effectiveness",),
        datasets=("synthetic",),
        methods=("gcn",),
        seeds=(0,),
        quick=True,
        changes={"epochs": 1},
        values=1,
    )
    reproduction.reproduce(quick, tmp_path / "out", device="cpu")
    figures.paper_figures([], quick, "cpu", None, tmp_path)
    significance.bias_significance(["synthetic"], seeds=[0], draws=10, device="cpu", epochs=1)
    assert not probes


def near_chance(right: float, trap: Data) -> str | None:
    """The note about a slow method that is right on this share of the nodes, or says class 0."""
    method = find_method("dsgcn")
    result = rg.fit(trap, "gcn", seeds=1, epochs=1, check_weight_decay=False)
    known = torch.rand(len(trap.y), generator=torch.Generator().manual_seed(0)) < right
    answers = torch.nn.functional.one_hot(torch.where(known, trap.y, 0), 8).float()
    made = replace(result, logits=answers[None], method="dsgcn", title="DSGCN")
    inputs = Inputs.of(trap, normalize_features=True, device=torch.device("cpu"))
    return weight_decay_check.weight_decay_note(made, method, method.configure({}), inputs)


def test_a_slow_method_near_chance_is_noted_without_training(trap: Data, probes: list[Any]) -> None:
    note = near_chance(0.2, trap)
    assert note is not None
    assert "may be too large" in note
    assert OPTION in note
    assert near_chance(0.6, trap) is None
    assert near_chance(0.0, trap) is None  # has not learned at all: there is a note already
    assert not probes


def test_the_terminal_shows_the_note(trap: Data, tmp_path: Path) -> None:
    torch.save(trap, tmp_path / "graph.pt")
    words = ["train", "--graph", str(tmp_path / "graph.pt"), "--method", "gcn", "--seeds", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert OPTION in " ".join(done.output.split())
