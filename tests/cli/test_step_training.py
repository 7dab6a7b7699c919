"""train, predict and audit with --shards: one path from a graph on disk to a report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core import memory
from rawlsgcn.cli import app
from rawlsgcn.experiments.large_graphs import step_fits
from rawlsgcn.experiments.model_files import split_words
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.splits import MASKS
from rawlsgcn.graphs.streaming import file_shards

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def launch(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards") / "shards"
    write_shards(rg.synthetic(300), 2, folder)
    return folder


def train(shards: Path, out: Path, *more: str) -> Any:
    words = ["train", "--shards", shards, "--method", "smoothed-mlp", "--out", out]
    return launch(*words, *(more or ("--epochs", "5")))


def test_shards_are_trained_on_predicted_and_audited(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_fits, "USUAL_STEPS", 60)
    trained = train(shards, tmp_path / "model", "--batch-size", "10", "--json", tmp_path / "m.json")
    assert trained.exit_code == 0, trained.stderr
    assert "Training on smoothed rows: once its features are smoothed" in trained.stdout
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert f"{metrics['steps']:,} steps in {metrics['epochs']} epochs (as many" in trained.stdout
    model = ["--model", tmp_path / "model"]
    made = launch("predict", "--shards", shards, *model, "--out", tmp_path / "p.parquet")
    assert made.exit_code == 0, made.stderr
    graph = rg.synthetic(300)
    split = rg.load_model(tmp_path / "model").split(graph)
    assert split == split_words([graph[key] for key in MASKS])
    assert pd.read_parquet(tmp_path / "p.parquet")["split"].tolist() == split
    files = ["--shards", shards, "--predictions", tmp_path / "p.parquet"]
    audited = launch("audit", *files, "--resamples", "100", "--json", tmp_path / "a.json")
    assert audited.exit_code == 0, audited.stderr
    found = json.loads((tmp_path / "a.json").read_text())["models"][0]
    assert found["accuracy"]["value"] == pytest.approx(metrics["accuracy"])
    assert found["bias"] == pytest.approx(metrics["bias"], rel=1e-3)


def test_a_shorter_run_goes_on(shards: Path, tmp_path: Path) -> None:
    assert train(shards, tmp_path / "a", "--epochs", "3").exit_code == 0
    assert train(shards, tmp_path / "a", "--epochs", "6").exit_code == 0
    assert train(shards, tmp_path / "b", "--epochs", "6").exit_code == 0
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = train(shards, tmp_path / "a", "--epochs", "6", "--lr", "0.5")
    assert other.exit_code == 2
    assert "has a checkpoint of another run: its lr is 0.01, not 0.5; choose" in other.stderr


@pytest.mark.parametrize("method", ["smoothed-mlp", "gcn"])
def test_files_of_an_earlier_model_go_and_others_stay(
    method: str, shards: Path, tmp_path: Path
) -> None:
    for name in ("config.json", "predictions.csv", "report.html", "leaderboard.csv", "mine.txt"):
        (tmp_path / name).write_text("{}")
    words = ["train", "--shards", shards, "--method", method, "--num-neighbors", "2,2"]
    result = launch(*words[: 5 if method == "smoothed-mlp" else 7], "--epochs=1", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    found = {each.name for each in tmp_path.iterdir() if not each.name.startswith("checkpoint-")}
    assert found == {"config.json", "metrics.json", "model.safetensors", "mine.txt"}
    assert list(tmp_path.glob("checkpoint-*"))


def test_too_little_memory_is_told_before_the_smoothing(tmp_path: Path) -> None:
    write_shards(rg.synthetic(300), 1, tmp_path / "shards")
    before = sorted(tmp_path.rglob("*"))
    result = train(tmp_path / "shards", tmp_path / "out", "--memory", "30MB")
    assert result.exit_code == 2
    assert "30 MB of memory are too little to smooth a graph of this size and" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        "train --method smoothed-mlp --epochs 1",
        "train --method rawlsgcn-graph --epochs 1",
        "train --method dsgcn --epochs 1 --seeds 1",
        "auto --time-limit 0.001",
        "predict --out p.csv --model",
        "balance",
        "smooth",
        "shard --dataset synthetic --count 1 --out new",
    ],
)
def test_every_command_names_the_least_memory_at_once(
    words: str, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command: list[Any] = words.split()
    if command[0] == "predict":
        assert train(shards, tmp_path / "model", "--epochs", "1").exit_code == 0
        command.append(tmp_path / "model")
    if command[0] != "shard":
        write_shards(rg.synthetic(300), 1, tmp_path / "shards")
        command += ["--shards", tmp_path / "shards"]
    before = sorted(tmp_path.rglob("*"))
    refused = launch(*command, "--memory", "1MB")
    assert refused.exit_code == 2
    found = re.fullmatch(
        r"rawlsgcn: 1 MB of memory are too little to .*: at least ([\d,]+) MB are needed "
        r"\(--memory (\d+)MB\)\n",
        refused.stderr,
    )
    assert found is not None, refused.stderr
    assert int(found[2]) > memory.resident_memory() // 10**6 // 2  # Python and torch are counted
    assert sorted(tmp_path.rglob("*")) == before
    enough = launch(*command, "--memory", f"{found[2]}MB")
    assert enough.exit_code == 0, enough.stderr


@pytest.mark.parametrize(
    "words",
    ["train --method smoothed-mlp --out", "train --method gcn --out", "auto --out"],
)
def test_the_folder_of_the_shards_is_no_place_for_a_model(words: str, shards: Path) -> None:
    before = sorted(shards.rglob("*"))
    result = launch(*words.split(), shards, "--shards", shards)
    assert result.exit_code == 2
    assert result.stderr.endswith("is in the folder of the shards: name another\n")
    assert sorted(shards.rglob("*")) == before


def test_predictions_of_negative_features_have_a_note_and_a_place_of_their_own(
    shards: Path, tmp_path: Path
) -> None:
    assert train(shards, tmp_path / "model", "--epochs", "1").exit_code == 0
    graph = rg.synthetic(300)
    graph.x = graph.x.to_dense() - 0.5
    write_shards(graph, 1, tmp_path / "other")
    words = ["predict", "--model", tmp_path / "model", "--shards", tmp_path / "other", "--out"]
    inside = launch(*words, tmp_path / "other" / "p.csv")
    assert inside.exit_code == 2
    assert "is in the folder of the shards" in inside.stderr
    result = launch(*words, tmp_path / "p.csv")
    assert result.exit_code == 0, result.stderr
    assert "Note: some features are negative, unlike those" in result.stdout
    assert "split" not in pd.read_csv(tmp_path / "p.csv")


def test_a_method_that_cannot_be_divided_is_trained_on_the_whole_graph(shards: Path) -> None:
    words = ["train", "--shards", shards, "--method", "dsgcn", "--epochs", "1", "--seeds", "1"]
    found = launch(*words)
    assert found.exit_code == 0, found.stderr
    assert "Training on the whole graph: it fits in memory" in found.stdout


def test_too_little_memory_for_samples_is_told_before_the_balancing(tmp_path: Path) -> None:
    write_shards(rg.synthetic(300), 1, tmp_path / "shards")
    before = sorted(tmp_path.rglob("*"))
    words = ["train", "--shards", tmp_path / "shards", "--method", "rawlsgcn-graph", "--epochs=1"]
    result = launch(*words, "--memory", "9MB", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "9 MB of memory are too little to train on samples of a graph" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    least = result.stderr.split("--memory ")[1].split(")")[0]
    assert int(least.removesuffix("MB")) > 9


def test_a_graph_over_the_limit_is_sampled(tmp_path: Path) -> None:
    words = ["train", "--dataset", "synthetic", "--method", "gcn", "--epochs", "1"]
    found = launch(*words, "--memory", "1MB", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.stderr
    assert "Training on samples: the whole graph would need about" in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--method smoothed-mlp --workers 1", "--workers does not apply to training on smoothed"),
        ("--method smoothed-mlp --seeds 2 --seed 3", "--seed is of one run, --seeds the number"),
        ("--method gcn --evaluate most", "unknown choice of nodes 'most'"),
        ("--method smoothed-mlp --evaluate most", "unknown choice of nodes 'most'"),
        ("--method smoothed-mlp --num-neighbors 5,5", "smoothed-mlp cannot be trained on sampled"),
        ("--method gcn --set patience=3", "no early stopping: leave out patience, and give fewer"),
        ("--method smoothed-mlp --average 3", "average is a share of the steps"),
        ("--method gcn --engine smoothed", "gcn needs the edges while it trains"),
        ("--method gcn --engine reference --num-neighbors 5,5", "is for the engine 'sampled'"),
        (
            "--method dsgcn --memory 9kB",
            "9 kB of memory are too little to use dsgcn with these settings",
        ),
        ("--method dsgcn --batch-size 9", "--batch-size does not apply to training on the whole"),
        ("--method gcn --memory lots", "'lots' is no amount of memory"),
        ("--method gcn --split random", "--shards has the whole graph"),
    ],
)
def test_mistakes_are_one_sentence(words: str, said: str, shards: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "out"]
    result = launch("train", "--shards", shards, *words.split(), *out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("method", ["smoothed-mlp", "gcn"])
def test_several_runs_have_means_and_deviations_and_one_model(
    method: str, shards: Path, tmp_path: Path
) -> None:
    words = ["train", "--shards", shards, "--method", method, "--epochs", "2", "--json", "-"]
    bare = launch(*words, "--seed", "1")  # neither a model nor checkpoints are kept
    assert bare.exit_code == 0, bare.stderr
    several = launch(*words, "--seeds", "3", "--out", tmp_path / "m")
    assert several.exit_code == 0, several.stderr
    assert "process, 3 runs: accuracy" in several.stderr
    assert method == "gcn" or " steps in 3 runs of 2 epochs, " in several.stderr
    assert " ± " in several.stderr
    one, all_of_them = json.loads(bare.stdout), json.loads(several.stdout)
    assert all_of_them["seeds"] == [0, 1, 2]
    runs = all_of_them["accuracy"]["runs"]
    assert runs[1] == one["accuracy"]
    assert all_of_them["accuracy"]["mean"] == pytest.approx(np.mean(runs))
    assert all_of_them["accuracy"]["std"] == pytest.approx(np.std(runs))
    best = int(np.argmax(all_of_them["validation_accuracy"]["runs"]))
    assert rg.load_model(tmp_path / "m").seed == all_of_them["best_seed"] == best
    assert rg.load_model(tmp_path / "m", seed=2).seed == 2
    again = launch(*words, "--seeds", "3", "--out", tmp_path / "m")
    assert json.loads(again.stdout)["bias"] == all_of_them["bias"]


@pytest.mark.parametrize("method", ["smoothed-mlp", "gcn"])
def test_every_labeled_node_can_be_evaluated(method: str, tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    few = graph.clone()
    few.test_mask = graph.test_mask & (torch.arange(300) < 100)
    for name, each in (("all", graph), ("few", few)):
        write_shards(each, 2, tmp_path / name)
    words = ["train", "--method", method, "--epochs", "2", "--json", "-", "--shards"]
    found = [
        json.loads(launch(*words, tmp_path / name, "--evaluate", which).stdout)["accuracy"]
        for name, which in (("all", "all"), ("few", "all"), ("few", "test"))
    ]
    assert found[0] == found[1] != found[2]


def test_training_on_rows_stops_when_validation_does_not_improve(
    shards: Path, tmp_path: Path
) -> None:
    words = ["--epochs", "60", "--batch-size", "10", "--set", "patience=2", "--json", "-"]
    found = json.loads(train(shards, tmp_path / "m", *words).stdout)
    assert 2 < found["epochs"] < 60
    again = json.loads(train(shards, tmp_path / "m", *words).stdout)
    assert again["epochs"] == found["epochs"]
    assert again["accuracy"] == found["accuracy"]


@pytest.mark.parametrize("words", [f"audit --predictions {__file__}", "auto"])
def test_what_processes_cannot_share_is_refused_under_torchrun(
    words: str, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = launch(*words.split(), "--shards", shards)
    assert result.exit_code == 2
    assert f"cannot share '{words.split()[0]}': start it without torchrun" in result.stderr


def test_an_audit_of_shards_takes_no_other_graph(shards: Path) -> None:
    both = launch("audit", "--shards", shards, "--dataset", "synthetic", "--predictions", __file__)
    assert "--shards has the whole graph" in both.stderr


def graph_files(folder: Path, labels: slice) -> list[Any]:
    """The files of a graph, and the labels of some of its nodes."""
    graph = rg.synthetic(300)
    arcs = pd.DataFrame(graph.edge_index.T.numpy(), columns=["source", "target"])
    arcs.to_csv(folder / "edges.csv", index=False)
    np.save(folder / "x.npy", graph.x.to_dense().numpy())
    chosen = pd.DataFrame({"id": range(300), "label": graph.y.numpy()})[labels]
    chosen.to_csv(folder / "y.csv", index=False)
    return ["shard", "--graph", folder / "edges.csv", "--features", folder / "x.npy"]


@pytest.mark.parametrize("factor", [10**12, 12])
def test_an_unlabeled_graph_is_predicted_on_and_nothing_else(
    factor: int, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_shards, "_TEXT", factor)  # files of text are read in batches, or not
    assert train(shards, tmp_path / "model", "--epochs", "2").exit_code == 0
    words = [*graph_files(tmp_path, slice(None)), "--memory", "8GB", "--count", "2", "--out"]
    made = launch(*words, tmp_path / "new")
    assert made.exit_code == 0, made.stderr
    files = []
    for folder, name in ((shards, "old.csv"), (tmp_path / "new", "new.csv")):
        words = ["predict", "--model", tmp_path / "model", "--shards", folder, "--out"]
        predicted = launch(*words, tmp_path / name)
        assert predicted.exit_code == 0, predicted.stderr
        files.append(pd.read_csv(tmp_path / name).filter(regex="^prob|^p_|class"))
    assert len(files[1]) == 300
    assert files[0].equals(files[1])
    for command in (
        ["train", "--method", "smoothed-mlp", "--out", tmp_path / "m"],
        ["train", "--method", "gcn", "--out", tmp_path / "m"],
        ["train", "--method", "gcn", "--num-neighbors", "2,2", "--out", tmp_path / "m"],
        ["train", "--method", "dsgcn"],
        ["auto"],
        ["audit", "--predictions", tmp_path / "new.csv"],
    ):
        result = launch(*command, "--shards", tmp_path / "new")
        assert result.exit_code == 2
        assert "have no labels, so that there is nothing to learn from or to" in result.stderr
        assert result.stderr.count("\n") == 1


def test_a_split_without_labels_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*graph_files(tmp_path, slice(None)), "--count", "2", "--out", tmp_path / "s"]
    for factor in (10**12, 12):
        monkeypatch.setattr(file_shards, "_TEXT", factor)
        result = launch(*words, "--split", "random", "--memory", "8GB")
        assert result.exit_code == 2
        assert "edges.csv has no labels, so that it has no split" in result.stderr


def test_unlabeled_nodes_are_predicted_but_neither_trained_on_nor_judged(tmp_path: Path) -> None:
    words = [*graph_files(tmp_path, slice(0, 200)), "--labels", tmp_path / "y.csv", "--count", "2"]
    assert launch(*words, "--out", tmp_path / "s").exit_code == 0
    trained = train(tmp_path / "s", tmp_path / "m", "--epochs", "2", "--json", tmp_path / "m.json")
    assert trained.exit_code == 0, trained.stderr
    words = ["predict", "--model", tmp_path / "m", "--shards", tmp_path / "s", "--out"]
    assert launch(*words, tmp_path / "p.csv").exit_code == 0
    table = pd.read_csv(tmp_path / "p.csv")
    assert len(table) == 300
    assert table["split"][200:].isna().all()
    found = launch(
        "audit", "--shards", tmp_path / "s", "--predictions", tmp_path / "p.csv", "--json", "-"
    )
    judged = json.loads(found.stdout)["how"]["nodes"]
    assert judged == (table["split"] == "test").sum() > 0


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return {**kept, "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_a_killed_run_gives_the_same_weights_and_two_processes_nearly(
    shards: Path, tmp_path: Path
) -> None:
    words = f"train --shards {shards} --method smoothed-mlp --batch-size 10 --epochs 60"
    command = ["-m", "rawlsgcn", *words.split(), "--set", "dropout=0", "--out"]
    one = [sys.executable, *command]
    run = subprocess.Popen([*one, str(tmp_path / "killed")], env=environment())
    try:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "killed").glob("checkpoint-*")):
            assert run.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait(60)
    finally:
        run.kill()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    two = [*TORCHRUN, "--nproc-per-node", "2", *command]
    for each in ([*one, "killed"], [*one, "whole"], [*two, "two"]):
        each[-1] = str(tmp_path / each[-1])
        subprocess.run(each, env=environment(), check=True, timeout=120, capture_output=True)
    killed, whole, shared = (
        load_file(tmp_path / name / "model.safetensors") for name in ("killed", "whole", "two")
    )
    for name in whole:
        assert torch.equal(killed[name], whole[name])
        assert (shared[name] - whole[name]).abs().max() < 2e-3
    figures = [
        json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("whole", "two")
    ]
    assert [each["processes"] for each in figures] == [1, 2]
    assert figures[0]["accuracy"] == pytest.approx(figures[1]["accuracy"], abs=1)
