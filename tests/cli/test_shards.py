"""shard, balance --shards and train on samples, also by several processes and after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn.balancing import distributed
from rawlsgcn.cli import app
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.graphs.streaming import file_shards

PROGRAM = ["-m", "rawlsgcn"]
# Sampled training of the default method.
SAMPLED = ["train", "--dataset", "synthetic", "--num-neighbors", "10,10"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
# Twelve steps an epoch, so that there is time to be killed in.
TRAIN = (
    "train --dataset synthetic --method rawlsgcn-grad --num-neighbors 5,5 --batch-size 10 "
    "--epochs 8 --lr 0.01 --set dropout=0"
)


def launch(*arguments: str) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    return {**kept, "OMP_NUM_THREADS": "1"}


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


@pytest.mark.slow
def test_a_killed_worker_is_restarted_and_the_result_is_that_of_an_unbroken_run(
    tmp_path: Path,
) -> None:
    command = [*TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "2", *PROGRAM, *TRAIN.split()]
    run = subprocess.Popen(
        [*command, "--out", str(tmp_path / "two")], env=environment(), stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "two").glob("checkpoint-*")):
            assert run.poll() is None, run.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(children(run.pid)[1], signal.SIGKILL)
        said = run.communicate(timeout=120)[1].decode()
    finally:
        run.kill()
    assert run.returncode == 0, said
    assert "exitcode: -9" in said
    assert launch(*TRAIN.split(), "--out", tmp_path / "one").exit_code == 0
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name in one:
        # A step that is lost or made twice would move weights by about the rate, 0.01.
        assert (one[name] - two[name]).abs().max() < 2e-4
    figures = [
        json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("one", "two")
    ]
    assert [each["processes"] for each in figures] == [1, 2]
    assert figures[0]["accuracy"] == pytest.approx(figures[1]["accuracy"], abs=0.3)


def test_pieces_of_two_scalings_are_never_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a process writes its new piece, each has removed its old one and they have met."""
    shards = write_shards(rg.synthetic(300), 2, tmp_path)
    for place in range(2):
        shards.write_scale(place, np.zeros(np.diff(shards.cuts)[place]))
    scaling = SimpleNamespace(
        converged=True,
        residual=0.0,
        iterations=1,
        scale=torch.ones(shards.cuts[1], dtype=torch.float64),
        first=0,
        last=shards.cuts[1],
        held_bytes=0,
    )
    monkeypatch.setattr(distributed, "balance_shards", lambda *_, **__: scaling)
    seen = []
    monkeypatch.setattr(
        torch.distributed, "barrier", lambda: seen.append((tmp_path / "00000-scale.npy").exists())
    )
    context = SimpleNamespace(rank=0, world_size=2, device="cpu")
    distributed.balance_and_save(shards, context)
    assert seen == [False, True]
    assert shards.open(0).scale.all()


def test_a_run_that_is_stopped_goes_on(tmp_path: Path) -> None:
    start = ["train", "--dataset", "synthetic", "--batch-size", "40", "--num-neighbors", "3,3"]
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    launch(*start, "--epochs", "4", "--out", unbroken)
    launch(*start, "--epochs", "2", "--checkpoint-every", "2", "--out", broken)
    assert launch(*start, "--epochs", "4", "--out", broken).exit_code == 0
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (broken, unbroken))
    assert all((ours[name] == theirs[name]).all() for name in ours)
    # The folder is a model like any other.
    logits = rg.load_model(broken).logits(rg.synthetic())
    accuracy = json.loads((broken / "metrics.json").read_text())["accuracy"]
    test = rg.synthetic().test_mask
    right = (logits.argmax(1) == rg.synthetic().y)[test].float().mean()
    assert 100 * float(right) == pytest.approx(accuracy, abs=0.2)
    other = launch(*start, "--epochs", "4", "--seed", "5", "--out", broken)
    assert other.exit_code == 2
    assert "has a checkpoint of another run: its seed is 0, not 5" in other.stderr
    other = launch(*start, "--epochs", "4", "--split", "random", "--out", broken)
    assert other.exit_code == 2
    assert "has a checkpoint of another run: its graph is" in other.stderr
    fewer = launch(*start, "--epochs", "3", "--out", broken)
    assert fewer.exit_code == 2
    assert "has a checkpoint after 4 epochs, more than the 3 to train for" in fewer.stderr
    assert launch(*start, "--epochs", "4", "--out", broken).exit_code == 0  # as it was


def test_a_step_that_no_epoch_has_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "out"
    train = [*SAMPLED, "--out", out, "--epochs"]
    assert launch(*train, "1").exit_code == 0
    (about,) = out.glob("checkpoint-*/checkpoint.json")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"step": 10**6, "epoch": 0}))
    result = launch(*train, "2")
    assert result.exit_code == 2
    assert "delete it to start again" in result.stderr


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "abcde-photo.npy").write_text("mine")
    result = launch("shard", "--dataset", "synthetic", "--count", "1", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds 'abcde-photo.npy'" in result.stderr
    assert (tmp_path / "abcde-photo.npy").exists()


def test_one_process_shards_balances_and_trains(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    made = launch("shard", "--dataset", "synthetic", "--count", "1", "--out", shards)
    assert "in 1 shard:" in made.stdout
    told = launch("balance", "--shards", shards, "--json", tmp_path / "balance.json")
    assert told.exit_code == 0
    assert json.loads((tmp_path / "balance.json").read_text())["residual"] <= 1e-8
    trained = launch("train", "--shards", shards, "--epochs", "1", "--out", tmp_path / "model")
    assert trained.exit_code == 0
    assert "1 process: accuracy" in trained.stdout
    assert launch("balance", "--shards", shards, "--tol", "0.5").exit_code == 0
    rough = launch("train", "--shards", shards, "--epochs", "1", "--out", tmp_path / "rough")
    assert rough.exit_code == 2
    assert "only, not 1e-06: balance again" in " ".join(rough.stderr.split())
    predicted = launch(
        *("predict", "--shards", shards, "--model", tmp_path / "model"),
        *("--out", tmp_path / "predicted.csv"),
    )
    assert predicted.exit_code == 2
    assert "only, not 1e-06: balance again" in " ".join(predicted.stderr.split())


S = " ".join(SAMPLED)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train --dataset synthetic --num-neighbors 10,0", "num_neighbors must have a whole"),
        ("train --dataset synthetic --num-neighbors ten", "num_neighbors must have a whole"),
        (f"{S} --method tail-gnn", "cannot be trained on sampled"),
        (f"{S} --method rawls", "unknown method 'rawls'"),
        (f"{S} --set num_layers=3", "give one number for each layer"),
        (f"{S} --set num_layers=two", "num_layers must be a whole number, not 'two'"),
        (f"{S} --set num_layers=", "num_layers must be a whole number, not ''"),
        (f"{S} --set patience=5", "sampled training has no early stopping"),
        (f"{S} --seeds 3 --seed 1", "--seed is of one run, --seeds the number of several"),
        (
            "train --dataset synthetic --batch-size 9",
            "--batch-size does not apply to training on the whole",
        ),
        ("train --num-neighbors 10,10", "name one graph"),
        ("train --shards nowhere", "holds no whole set of shards"),
        ("train --shards nowhere --dataset synthetic", "--shards has the whole graph"),
        ("balance --shards nowhere", "holds no whole set of shards"),
        ("balance --shards nowhere --dataset synthetic", "--shards has the whole graph"),
        ("balance --dataset synthetic", "name the file to write: --out FILE"),
        (f"{S} --device tpu", "unknown device 'tpu'"),
    ],
)
def test_mistakes_are_one_sentence(arguments: str, said: str, tmp_path: Path) -> None:
    given = arguments.split()
    out = ["--out", str(tmp_path / "out")] if given[0] == "train" else []
    result = launch(*given, *out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # One before the processes meet, one after.
        ("--average 7", "average is a share of the steps, from 0 to 1, not 7"),
        ("--batch-size 1", "2 processes cannot share batches of 1"),
    ],
)
def test_two_processes_and_their_restarts_report_a_mistake_once(
    arguments: str, said: str, tmp_path: Path
) -> None:
    command = [*TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "1", *PROGRAM, *SAMPLED]
    given = ["--out", str(tmp_path / "out"), *arguments.split()]
    run = subprocess.run(
        [*command, *given], env=environment(), capture_output=True, text=True, timeout=120
    )
    assert run.returncode != 0
    assert run.stderr.count(said) == 1, run.stderr
    assert "rawlsgcn/cli" not in run.stderr  # no traceback through our code


def test_a_group_that_cannot_be_joined_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = {"RANK": "zero", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    for name, value in {**place, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
        monkeypatch.setenv(name, value)
    result = launch(*SAMPLED, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "could not join the others at 127.0.0.1:0" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("epochs", ["1", "3"])
def test_a_rate_that_ruins_the_weights_is_an_error(epochs: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = launch(*SAMPLED, "--lr", "1e30", "--epochs", epochs, "--out", out)
    assert result.exit_code == 2
    assert "lower the learning rate of 1e+30" in result.stderr
    assert not (out / "model.safetensors").exists()


def test_one_process_balances_any_number_of_shards(tmp_path: Path) -> None:
    launch("shard", "--dataset", "synthetic", "--count", "3", "--out", tmp_path)
    result = launch("balance", "--shards", tmp_path, "--memory", "1MB")
    assert result.exit_code == 2
    assert "1 MB of memory are too little to balance" in result.stderr
    result = launch("balance", "--shards", tmp_path, "--memory", "8GB", "--json", "-")
    assert result.exit_code == 0
    about = json.loads(result.stdout)
    shards = Shards(tmp_path)
    assert about["rows"] == [0, shards.num_nodes]
    assert about["residual"] <= 1e-8
    scale = np.concatenate([shard.scale for shard in shards.open_all()])
    graph = rg.synthetic()
    whole = rg.balance(graph.edge_index, num_nodes=graph.num_nodes).scale
    np.testing.assert_allclose(scale, whole, rtol=1e-6)
    result = launch("balance", "--dataset", "synthetic", "--memory", "1GB", "--out", "b.npz")
    assert result.exit_code == 2
    assert "--memory is for shards" in result.stderr


def test_an_incomplete_environment_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANK", "0")
    result = launch(*SAMPLED, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "with torchrun" in result.stderr


def test_several_processes_cannot_share_other_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for words in (["train"], ["balance", "--out", str(tmp_path / "b.npz")]):
        result = launch(*words, "--dataset", "synthetic")
        assert result.exit_code == 2
        assert "several processes cannot share" in result.stderr


def edge_list(folder: Path) -> list[str]:
    rows = [f"n{i},n{(7 * i + 1) % 60}" for i in range(60)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *rows]) + "\n")
    labels = [f"n{i},{'odd' if i % 2 else 'even'}" for i in range(60)]
    (folder / "labels.csv").write_text("\n".join(["id,label", *labels]) + "\n")
    np.save(folder / "x.npy", np.eye(60, dtype=np.float32))
    files = {"graph": "edges.csv", "labels": "labels.csv", "features": "x.npy"}
    return [word for option, name in files.items() for word in (f"--{option}", str(folder / name))]


def test_files_are_read_in_batches_where_memory_is_short_and_give_the_same_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [*edge_list(tmp_path), "--count", "2", "--split", "random"]
    whole = launch("shard", *files, "--out", tmp_path / "whole")
    assert "120 arcs, read at once, in 2 shards" in " ".join(whole.stdout.split())
    monkeypatch.setattr(file_shards, "_TEXT", 10**12)
    parts = launch("shard", *files, "--out", tmp_path / "parts", "--memory", "8GB")
    said = " ".join(parts.stdout.split())
    assert "Reading in batches: at once the files would take about" in said
    assert "GB are left for them" in said
    assert "120 arcs, read in batches, in 2 shards" in said
    assert "the classes are numbered by name: 0 even, 1 odd" in said
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "parts" / path.name).read_bytes()


def test_a_damaged_row_of_a_large_file_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_shards, "_TEXT", 10**12)
    files = [*edge_list(tmp_path), "--count", "2", "--out", str(tmp_path / "parts")]
    with (tmp_path / "edges.csv").open("a") as file:
        file.write("n5,n999\n")
    result = launch("shard", *files, "--memory", "8GB")
    assert result.exit_code == 2
    assert "edges.csv, line 62: node n999 is not in labels.csv" in " ".join(result.stderr.split())
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--dataset cora-ml --nodes 500", "--nodes is the size of a synthetic graph"),
        ("--nodes 500", "--nodes is the size of a synthetic graph"),
        ("--dataset synthetic --nodes 500 --labels edges.csv", "a synthetic graph has no files"),
        ("--dataset synthetic --seed 3", "--seed is for a synthetic graph of any size"),
        ("--dataset synthetic --memory much", "'much' is no amount of memory"),
        ("--dataset synthetic --memory 1kB", "1 kB of memory are too little to cut a graph into"),
        ("--graph edges.csv", "graph has none: give --features"),
        ("--graph edges.csv --labels edges.csv", "graph has none: give --features"),
        ("--graph . --labels edges.csv", "has its own features and labels"),
        ("--graph .", "is a folder without edge.csv.gz or data.npz"),
    ],
)
def test_options_of_shard_that_do_not_go_together(
    options: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(file_shards, "_TEXT", 10**12)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    result = launch("shard", *options.split(), "--count", "2", "--out", "shards")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_a_synthetic_graph_of_any_size_is_drawn_into_shards(tmp_path: Path) -> None:
    options = "--dataset synthetic --nodes 2000 --average-degree 6 --num-features 30 --count 2"
    result = launch("shard", *options.split(), "--seed", "4", "--out", tmp_path / "shards")
    assert result.exit_code == 0
    assert "2,000 nodes" in result.stdout
    assert "not real data" in " ".join(result.stdout.split())
