"""``rawlsgcn auto``: what it writes and prints, on ordinary and awkward graphs, and Ctrl-C."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pool import small_pool
from typer.testing import CliRunner, Result

import rawlsgcn as rg
from rawlsgcn.cli import app
from rawlsgcn.experiments.model_search import auto, search

FILES = {
    *("model.safetensors", "config.json", "metrics.json", "predictions.csv", "leaderboard.csv"),
    *("report.html", "by_degree.png", "leaderboard.png"),
}


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with small_pool():
        yield


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result: Result, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("rawlsgcn: ")
    assert len(result.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in result.stderr


def write_csv(folder: Path, labeled: list[int], *, isolated: int = 0) -> list[Any]:
    """A graph of three classes as CSV files; ``labeled`` are the numbers of labels by class."""
    rng, nodes = np.random.default_rng(0), 240
    y = np.arange(nodes) % 3
    pairs = rng.integers(0, nodes - isolated, (4 * nodes, 2))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (same | (rng.random(len(pairs)) < 0.1))]
    with (folder / "edges.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerow(["source", "target"])
        csv.writer(file).writerows([f"n{a}", f"n{b}"] for a, b in pairs)
    features = rng.random((nodes, 6)) * (rng.random((nodes, 6)) < 0.5)
    features[np.arange(nodes), y] += 0.5
    with (folder / "features.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["node", *"abcdef"])
        writer.writerows([f"n{i}", *row.round(3)] for i, row in enumerate(features))
    with (folder / "labels.csv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "label"])
        for node, label in enumerate(y):
            known = node // 3 < labeled[label]
            writer.writerow([f"n{node}", label if known else -1])
    names = ("graph", "edges"), ("features", "features"), ("labels", "labels")
    return [word for option, name in names for word in (f"--{option}", folder / f"{name}.csv")]


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "graph.pt"
    torch.save(rg.synthetic(300), path)
    return path


@pytest.fixture(scope="module")
def written(graph_file: Path, tmp_path_factory) -> tuple[Result, Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("auto")
    result = call(
        "auto", "--graph", graph_file, "--out", folder / "best", "--json", folder / "json"
    )
    assert result.exit_code == 0, result.output
    return result, folder / "best", json.loads((folder / "json").read_text())


def test_it_prints_the_leaderboard_why_and_who_gains(written) -> None:
    result, _, figures = written
    words = " ".join(result.output.split())
    for member in figures["leaderboard"]:
        assert member["member"] in words
    assert words.count("→") == len(figures["chosen"]) + 1  # and in the legend
    assert "Tuned GCN" in words
    assert "Compared with Tuned GCN, Auto changes accuracy by" in words
    assert "95 % interval over nodes" in words
    assert "auto" in call("--help").output


def test_the_folder_has_everything(written) -> None:
    _, folder, figures = written
    assert {file.name for file in folder.iterdir()} == FILES
    rows = list(csv.DictReader((folder / "leaderboard.csv").open(encoding="utf-8")))
    assert [row["member"] for row in rows] == [row["member"] for row in figures["leaderboard"]]
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["chosen"] == figures["chosen"]
    for each in (metrics, metrics["baseline"]):
        assert not {"lr", "epochs", "normalization"} & set(each)
        assert each["settings"]["runs"][0]["settings"]["epochs"] > 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "How it was chosen" in page
    assert "Tuned GCN" in page
    assert "&#34;weight&#34;" not in page  # the text by which the runs are saved


def test_the_saved_model_predicts_the_same_bits(written, graph_file: Path, tmp_path: Path) -> None:
    _, folder, _ = written
    graph = rg.synthetic(300)
    exact = torch.softmax(rg.load_model(folder).logits(graph).double(), -1)
    assert np.array_equal(probabilities(folder / "predictions.csv"), exact.numpy())
    again = tmp_path / "again.csv"
    done = call("predict", "--model", folder, "--graph", graph_file, "--out", again)
    assert done.exit_code == 0, done.output
    assert np.allclose(probabilities(again), exact, atol=1e-6)


def probabilities(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name.startswith("p_")]
    return np.array([[float(row[name]) for name in names] for row in rows])


@pytest.fixture(scope="module")
def other_graph(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("other") / "other.pt"
    torch.save(rg.synthetic(240), path)
    return path


@pytest.mark.slow
def test_a_transferable_model_is_used_on_another_graph(
    graph_file: Path, other_graph: Path, tmp_path: Path
) -> None:
    out, predicted = tmp_path / "best", tmp_path / "predicted.csv"
    words = ("--graph", graph_file, "--transferable", "--out", out)
    done = call("auto", *words)
    assert done.exit_code == 0, done.output
    assert "adjacency" not in (out / "leaderboard.csv").read_text(encoding="utf-8")
    done = call("predict", "--model", out, "--graph", other_graph, "--out", predicted)
    assert done.exit_code == 0, done.output
    assert probabilities(predicted).shape[0] == 240


def test_a_model_with_adjacency_members_is_refused_for_another_graph(
    graph_file: Path, other_graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = [each for each in search.POOL if each.name == "adjacency"]
    monkeypatch.setattr(search, "POOL", tuple(only))
    out = tmp_path / "best"
    done = call("auto", "--graph", graph_file, "--out", out)
    assert "cannot be used on another graph" in " ".join(done.output.split())
    predicted = ("--out", tmp_path / "predicted.csv")
    refused(call("predict", "--model", out, "--graph", other_graph, *predicted), "on that graph")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labeled", "isolated"), [([20, 20, 20], 0), ([40, 30, 30], 15)], ids=["60 labels", "isolated"]
)
def test_graphs_given_as_csv(tmp_path: Path, labeled: list[int], isolated: int) -> None:
    files = write_csv(tmp_path, labeled, isolated=isolated)
    done = call("auto", *files, "--split", "random", "--out", tmp_path / "best")
    assert done.exit_code == 0, done.output
    with (tmp_path / "best" / "predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 241
    assert rows[1][0].startswith("n")


def test_a_class_with_one_training_node(tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    ones = (graph.train_mask & (graph.y == 0)).nonzero().view(-1)
    graph.train_mask[ones[1:]] = False
    torch.save(graph, tmp_path / "graph.pt")
    done = call("auto", "--graph", tmp_path / "graph.pt")
    assert done.exit_code == 0, done.output


def test_a_graph_without_features(tmp_path: Path) -> None:
    files = write_csv(tmp_path, [60, 60, 60])
    done = call("auto", *files[:2], *files[4:], "--split", "random")
    assert done.exit_code == 0, done.output


def test_the_time_limit_ends_the_search(graph_file: Path, tmp_path: Path) -> None:
    limited = ("auto", "--graph", graph_file, "--time-limit", "0.001", "--json")
    done = call(*limited, tmp_path / "json")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "json").read_text())
    assert len(figures["leaderboard"]) == 1
    assert figures["baseline"]["dataset"] == figures["dataset"]  # the GCN comes first
    assert "the time limit was reached" in figures["notes"][-1]
    assert figures["explanation"][0] == "'GCN' is the only model that was trained."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dataset", "synthetic", "--time-limit", "0"], ["--time-limit", "positive"]),
        (["--dataset", "synthetic", "--time-limit", "nan"], ["--time-limit"]),
        (["--dataset", "synthetic", "--seed", "-1"], ["seed"]),
        (["--dataset", "synthetic", "--seed", str(2**62)], ["seed"]),
        ([], ["--dataset"]),
        (["--dataset", "synthetic", "--graph", __file__], ["either"]),
        (["--graph", "nowhere.csv"], ["nowhere.csv"]),
        (["--dataset", "synthetic", "--evaluate", "none"], ["none"]),
        (["--dataset", "synthetic", "--device", "tpu"], ["tpu"]),
    ],
)
def test_errors_are_one_sentence(options: list[str], words: list[str]) -> None:
    refused(call("auto", *options), *words)


def interrupt_at(
    number: int, monkeypatch: pytest.MonkeyPatch, by: signal.Signals = signal.SIGTERM
) -> None:
    """Make a signal come in the training of a member."""
    train, calls = search.train_member, []

    def train_member(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == number:
            signal.raise_signal(by)
        return train(*args, **options)

    monkeypatch.setattr(search, "train_member", train_member)


@pytest.fixture
def heard() -> Iterator[None]:
    """Where the tests run in the background Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_keep_the_best_so_far(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: signal.Signals, heard
) -> None:
    interrupt_at(3, monkeypatch, by)
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    done = call("auto", "--graph", graph_file, "--out", tmp_path / "best")
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("rawlsgcn: ")]
    assert "kept; Ctrl-C again stops at once" in line
    assert "training was interrupted" in done.output
    assert {file.name for file in (tmp_path / "best").iterdir()} == FILES
    assert len((tmp_path / "best" / "leaderboard.csv").read_text().splitlines()) == 3


def test_ctrl_c_before_anything_is_finished_writes_nothing(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(1, monkeypatch)
    done = call("auto", "--graph", graph_file, "--out", tmp_path / "best")
    assert done.exit_code == 130
    assert "interrupted" in done.stderr
    assert not (tmp_path / "best").exists()


def test_a_second_ctrl_c_ends_at_once_and_keeps_the_model(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(2, monkeypatch)

    def audit(self: Any, **options: Any) -> None:
        # Whoever does not wait for the page has the model.
        assert (tmp_path / "best" / "model.safetensors").exists()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("rawlsgcn.experiments.model_search.result.AutoResult.audit", audit)
    done = call("auto", "--graph", graph_file, "--out", tmp_path / "best")
    assert done.exit_code == 0, done.output
    assert "there is no page" in done.output
    assert (tmp_path / "best" / "model.safetensors").exists()
    assert not (tmp_path / "best" / "report.html").exists()


def test_a_second_ctrl_c_while_the_answer_is_made_leaves_the_earlier_folder(
    written, graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, _ = written
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    interrupt_at(2, monkeypatch)
    again = lambda self: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    monkeypatch.setattr(auto, "answer", again)
    done = call("auto", "--graph", graph_file, "--seed", "1", "--out", folder)
    assert done.exit_code == 130
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("seconds", [4, 8])
def test_a_killed_run_leaves_the_earlier_folder(
    written, tmp_path: Path, graph_file: Path, seconds: float
) -> None:
    _, folder, _ = written
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    words = ["auto", "--graph", graph_file, "--seed", "1", "--out", folder]
    process = subprocess.Popen(
        [sys.executable, "-m", "rawlsgcn", *map(str, words)], stdout=subprocess.DEVNULL
    )
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    after = {file.name: file.read_bytes() for file in folder.iterdir() if file.name in before}
    assert after == before


def test_a_failed_write_leaves_the_earlier_folder(
    written, graph_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, _ = written
    before = {file.name: file.read_bytes() for file in folder.iterdir()}

    def write(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rawlsgcn.experiments.result.Result.write_model", write)
    done = call("auto", "--graph", graph_file, "--seed", "1", "--out", folder)
    assert done.exit_code == 130
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_ctrl_c_after_the_training_keeps_the_model(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rawlsgcn.reporting.page.report", report)
    done = call("auto", "--graph", graph_file, "--out", tmp_path / "best")
    assert done.exit_code == 0, done.output
    assert "there is no page and no picture" in " ".join(done.output.split())
    names = {file.name for file in (tmp_path / "best").iterdir()}
    assert names == {name for name in FILES if not name.endswith((".png", ".html"))}
    words = ["--graph", graph_file, "--out", tmp_path / "used.csv"]
    used = call("predict", "--model", tmp_path / "best", *words)
    assert used.exit_code == 0, used.output
