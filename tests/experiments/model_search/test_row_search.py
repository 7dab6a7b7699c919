"""``auto`` on smoothed rows: the usable members of the pool, chosen as in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn._core.atomic_folders import atomic_directory
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.cli import app
from rawlsgcn.cli import auto as auto_command
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.experiments.large_graphs import step_fits
from rawlsgcn.experiments.large_graphs.shard_predictions import predict_shards
from rawlsgcn.experiments.model_files import outdated_in
from rawlsgcn.experiments.model_search import pool, row_search
from rawlsgcn.experiments.model_search.row_search import auto_rows, row_candidates
from rawlsgcn.graphs.shards import write_shards
from rawlsgcn.graphs.shards.shard_graph import ShardNodes


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "RATES", (0.05, 0.01))
    monkeypatch.setattr(pool, "DECAYS", (5e-5,))
    monkeypatch.setattr(step_fits, "usual_epochs", lambda steps, most: 15)


def test_members_that_need_the_graph_are_left_out_with_the_reason() -> None:
    usable, left_out = row_candidates()
    assert [each.name for each in usable] == ["smoothed", "balanced"]
    assert "GCN" in left_out
    assert "needs the edges" in left_out["GCN"]
    assert "min_degree=10 needs the whole graph in memory" in left_out["lifted"]
    assert "inputs=adjacency" in left_out["adjacency"]


@pytest.mark.usefixtures("few_runs")
def test_the_saved_mean_has_the_metrics_on_the_graph_in_memory(tmp_path: Path) -> None:
    graph = rg.synthetic(600)
    shards = write_shards(graph, 2, tmp_path / "shards")
    metrics = auto_rows(ShardNodes.of(shards), tmp_path / "model", memory=10**11)
    assert sum(row["weight"] for row in metrics["leaderboard"]) == pytest.approx(1)
    model = rg.load_model(tmp_path / "model")
    logits = model.logits(graph)
    degree = torch.bincount(graph.edge_index[0], minlength=600)
    expected = evaluate_run(logits, graph.y, degree, graph.test_mask, graph.val_mask)
    for name in ("accuracy", "bias", "low_degree_accuracy"):
        assert metrics[name] == pytest.approx(getattr(expected, name), rel=1e-3), name
    blocks = [each for _, each in predict_shards(model, shards, memory=10**11)]
    assert (torch.cat(blocks) - torch.softmax(logits, -1)).abs().max() < 1e-5


@pytest.mark.usefixtures("few_runs")
def test_a_search_that_is_stopped_goes_on_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = ShardNodes.of(write_shards(rg.synthetic(300), 2, tmp_path / "shards"))
    whole = auto_rows(nodes, tmp_path / "whole", memory=10**11)
    train, trained = row_search.train_with_checkpoints, []

    def stopped(*arguments: Any, **how: Any) -> float:
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(1)
        return train(*arguments, **how)

    monkeypatch.setattr(row_search, "train_with_checkpoints", stopped)
    with pytest.raises(KeyboardInterrupt):
        auto_rows(nodes, tmp_path / "broken", memory=10**11)
    assert len(list((tmp_path / "broken" / row_search.RUNS).iterdir())) == 2
    monkeypatch.setattr(row_search, "train_with_checkpoints", train)
    again = auto_rows(nodes, tmp_path / "broken", memory=10**11)
    assert again["accuracy"] == whole["accuracy"]
    assert again["temperature"] == whole["temperature"]
    assert not (tmp_path / "broken" / row_search.RUNS).exists()


@pytest.mark.usefixtures("few_runs")
def test_a_time_limit_ends_between_two_runs(tmp_path: Path) -> None:
    nodes = ShardNodes.of(write_shards(rg.synthetic(300), 2, tmp_path / "shards"))
    metrics = auto_rows(nodes, tmp_path / "model", memory=10**11, time_limit=1e-6)
    assert [(row["member"], row["runs"]) for row in metrics["leaderboard"]] == [("smoothed", 1)]
    assert metrics["skipped"] == ["smoothed (further runs)", "balanced"]
    assert rg.load_model(tmp_path / "model").method.name == "auto"


def test_runs_that_a_killed_search_left_go_with_the_next_model(tmp_path: Path) -> None:
    (tmp_path / "model" / row_search.RUNS / "abc").mkdir(parents=True)
    (tmp_path / "model" / "runs").mkdir()  # a folder of the user
    with atomic_directory(tmp_path / "model", outdated_in(tmp_path / "model")) as folder:
        (folder / "config.json").touch()
    assert not (tmp_path / "model" / row_search.RUNS).exists()
    assert (tmp_path / "model" / "runs").exists()


@pytest.mark.usefixtures("few_runs")
def test_runs_that_diverge_are_never_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "RATES", (1e30, 0.01))
    nodes = ShardNodes.of(write_shards(rg.synthetic(300), 1, tmp_path / "shards"))
    metrics = auto_rows(nodes, tmp_path / "model", memory=10**11)
    assert metrics["accuracy"] > 30
    monkeypatch.setattr(pool, "RATES", (1e30,))
    with pytest.raises(RawlsError, match="training diverged with every model"):
        auto_rows(nodes, tmp_path / "none", memory=10**11)


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
def test_the_command_searches_rows_where_the_graph_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(*words: Any) -> Any:
        arguments = ["auto", "--shards", tmp_path / "shards", *words]
        return CliRunner().invoke(app, [str(each) for each in arguments])

    write_shards(rg.synthetic(300), 2, tmp_path / "shards")
    monkeypatch.setattr(auto_command, "_whole_graph", lambda shards, memory: None)
    found = launch("--out", tmp_path / "model")
    assert found.exit_code == 0, found.stderr
    said = " ".join(found.stdout.split())
    assert "'lifted' was left out: min_degree=10 needs the whole graph in memory" in said
    assert "synthetic, Auto: accuracy" in said
    bare = launch()
    assert bare.exit_code == 0, bare.stderr
    assert "written" not in bare.stdout
    short = launch("--time-limit", "1e-9", "--evaluate", "all", "--out", tmp_path / "short")
    assert short.exit_code == 0, short.stderr
    said = " ".join(short.stdout.split())
    assert "the time limit was reached, so these were not trained: 'smoothed (further" in said
    assert not list(tmp_path.glob("*/.auto-runs"))
    for words, wrong in (
        (["--baseline", "--out", tmp_path / "b"], "--baseline needs the whole graph"),
        (["--dataset", "synthetic"], "--shards has the whole graph"),
    ):
        result = launch(*words)
        assert result.exit_code == 2
        assert wrong in result.stderr


def test_shards_that_fit_are_searched_as_a_graph(tmp_path: Path) -> None:
    graph = rg.synthetic(300)
    write_shards(graph, 2, tmp_path / "shards")
    data = auto_command._whole_graph(tmp_path / "shards", "64GB")
    assert data is not None
    assert torch.equal(data.edge_index, graph.edge_index)
    assert auto_command._whole_graph(tmp_path / "shards", "1MB") is None
