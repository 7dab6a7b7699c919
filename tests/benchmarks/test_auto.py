"""The evaluation of auto: rivals that learn, splits, resuming, and tables of known figures."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import rawlsgcn
from benchmarks.auto import page, records, times
from benchmarks.auto.__main__ import app
from benchmarks.auto.models import NETWORKS
from benchmarks.auto.operations import EdgeSums, dropped
from benchmarks.auto.records import Options, Task, read_records, run_task
from benchmarks.auto.splits import load_split
from benchmarks.auto.summary import FAILS, HOLDS, MISSING, SECONDS, Summary, t_interval
from benchmarks.auto.training import RIVALS, RunSettings, Trained, best_mean, grid, train_rival
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.catalog import CATALOG
from rawlsgcn.methods import Inputs

CPU = torch.device("cpu")


def dense(x: torch.Tensor) -> torch.Tensor:
    return x if x.layout == torch.strided else x.to_dense()


@pytest.mark.parametrize("features", ["sparse", "dense"])
@pytest.mark.parametrize("rival", NETWORKS)
def test_runs_side_by_side_give_the_numbers_of_torch_geometric(rival: str, features: str) -> None:
    """Logits and gradients of each run are those of its own torch_geometric module."""
    graph = synthetic(200, classes=3)
    if features == "dense":
        graph.x = torch.rand(200, 20, generator=torch.Generator().manual_seed(0))
    inputs, kind = Inputs.of(graph), NETWORKS[rival]
    models = []
    for seed in range(2):
        torch.manual_seed(seed)
        model = kind.network(inputs.num_features, 16, inputs.num_classes, 0.0)
        for parameter in model.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        models.append(model)
    plain = torch.stack([model(dense(inputs.x), inputs.edge_index) for model in models], 1)
    weights = {
        name: torch.stack([model.get_parameter(name) for model in models])
        for name, _ in models[0].named_parameters()
    }
    ours = kind(inputs, inputs.train)(weights, 0)
    torch.testing.assert_close(ours, plain[inputs.train])
    torch.testing.assert_close(kind(inputs, None)(weights, 0), plain)
    parameters = [parameter for model in models for parameter in model.parameters()]
    mix = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad((ours * mix).sum(), parameters)
    wanted = torch.autograd.grad((plain[inputs.train] * mix).sum(), parameters)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_dropout_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    out = dropped(torch.ones(1000, 201), p)
    assert float((out == 0).double().mean()) == pytest.approx(p, abs=0.005)
    assert float(out.max()) == pytest.approx(1 / (1 - p), rel=1e-3)


def test_gathering_and_summing_edges_are_transposes() -> None:
    edges = EdgeSums(torch.tensor([2, 0, 2]), 4)
    x = torch.arange(8.0).view(4, 2)
    assert torch.equal(edges.gather(x), x[[2, 0, 2]])
    assert torch.equal(edges.sum(x[:3]), torch.stack([x[1], x[3] * 0, x[0] + x[2], x[3] * 0]))


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_learn(rival: str) -> None:
    """A rival that did nothing would be easily beaten."""
    inputs = Inputs.of(synthetic(300, classes=2))
    settings = [RunSettings(64, 0.5, lr, 0.0, 0) for lr in (0.05, 0.01)]
    answer = best_mean(train_rival(rival, inputs, settings, epochs=80), inputs)
    right = answer.probabilities.argmax(-1) == inputs.y
    assert float(right[inputs.train].double().mean()) > 0.8
    assert float(right[inputs.test].double().mean()) > 0.6
    torch.testing.assert_close(answer.probabilities.sum(1), torch.ones(300, dtype=torch.float64))


def test_the_same_seed_gives_the_same_numbers() -> None:
    inputs = Inputs.of(synthetic(150, classes=2))
    settings = [RunSettings(16, 0.5, 0.01, 0.0, seed) for seed in (0, 1)]
    first, second = (train_rival("gat", inputs, settings, epochs=5) for _ in range(2))
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0].logits, first[1].logits)


def test_the_grid_has_96_runs_and_a_part_of_it_is_always_the_same() -> None:
    for rival in RIVALS:
        assert len(set(grid(rival))) == 96
        part = grid(rival, 10)
        assert part == grid(rival, 10)
        assert len(part) == 10
        assert set(part) <= set(grid(rival))
    with pytest.raises(rawlsgcn.RawlsError, match="from 1 to 96"):
        grid("gcn", 97)


def test_the_best_six_never_contain_a_run_that_diverged() -> None:
    inputs = Inputs.of(synthetic(100, classes=2))
    right = torch.nn.functional.one_hot(inputs.y, 2).float()
    settings = [RunSettings(64, 0.5, 0.01, 0.0, seed) for seed in range(9)]
    # The run that diverged would be the best one by its remaining predictions.
    broken = 9 * right
    broken[inputs.test[0]] = math.nan
    logits = [broken, *[-right] * 4, *[right] * 4]
    answer = best_mean([Trained(s, x) for s, x in zip(settings, logits, strict=True)], inputs)
    assert [each["seed"] for each in answer.chosen] == [5, 6, 7, 8, 1, 2]
    assert answer.diverged == 1
    assert bool(answer.probabilities.isfinite().all())
    with pytest.raises(rawlsgcn.RawlsError, match="diverged"):
        best_mean([Trained(settings[0], broken)], inputs)


def test_splits_differ_and_every_other_labeled_node_is_evaluated() -> None:
    masks = []
    for split in (0, 1, 2):
        graph = load_split("synthetic", split)
        every = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
        assert torch.equal(every.sum(0), (graph.y >= 0).long())
        assert int(graph.train_mask.sum()) == 20 * int(graph.y.max() + 1)
        masks.append(graph.train_mask)
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[1], masks[2])
    assert torch.equal(load_split("synthetic", 1).train_mask, masks[1])


@pytest.mark.slow
def test_the_stored_splits_of_chameleon_are_disjoint_and_differ(data_root: Path) -> None:
    train = []
    for split in range(10):
        graph = load_split("chameleon", split, data_root)
        every = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
        assert torch.equal(every.sum(0), (graph.y >= 0).long())
        train.append(graph.train_mask)
    assert len({tuple(mask.tolist()) for mask in train}) == 10
    stored = rawlsgcn.load("chameleon", root=data_root)
    assert torch.equal(stored.train_mask, train[0])
    with pytest.raises(rawlsgcn.RawlsError, match="10 splits"):
        load_split("chameleon", 10, data_root)


def perfect(graph: Any, *, seed: int, device: str, evaluate: str, progress: Any) -> Any:
    """Stand in for auto: it knows the labels."""
    progress(1, 1, "perfect")
    assert (seed, device, evaluate) == (0, "cpu", "all")
    logits = 3 * torch.nn.functional.one_hot(graph.y.clamp(min=0)).float()
    figures = {"accuracy": [100.0], "low_degree_accuracy": [100.0], "calibrated_bias": [0.1]}
    return SimpleNamespace(
        logits=logits.unsqueeze(0),
        best_run=0,
        chosen=["labels"],
        leaderboard=pd.DataFrame({"member": ["GCN"], "runs": [12], **figures}),
        parts=pd.DataFrame({"part": ["best member"], **figures}),
    )


def test_a_record_has_the_figures_of_the_answer(tmp_path: Path) -> None:
    options = Options(tmp_path, CPU, command="python -m benchmarks.auto")
    record = run_task(Task("synthetic", 1, "auto"), options, auto=perfect)
    assert record["accuracy"] == record["low_degree_accuracy"] == 100
    assert record["validation_accuracy"] == 100
    assert record["calibrated_validation_loss"] < 0.01
    assert record["chosen"] == ["labels"]
    assert record["runs"] == 12
    summary = Summary([record])
    assert summary.parts("synthetic") == {"GCN": (0, 0, 1), "best member": (0, 0, 1)}
    assert "| best member | +0.0 / +0.0 / × 1.00 |" in page.markdown(summary)
    assert record["seconds"] > 0
    assert read_records(tmp_path) == [json.loads(json.dumps(record))]


def test_finished_records_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rawlsgcn, "auto", perfect, raising=False)
    words = ["--datasets", "synthetic", "--rivals", "gcn", "--runs", "2", "--epochs", "2"]
    words += ["--out", str(tmp_path)]

    def names() -> set[str]:
        return {path.name for path in (tmp_path / "runs").iterdir()}

    result = CliRunner().invoke(app, [*words, "--splits", "1"])
    assert result.exit_code == 0, result.output
    first = {"synthetic-0-auto.json", "synthetic-0-gcn.json"}
    assert names() == first
    before = {name: (tmp_path / "runs" / name).stat().st_mtime_ns for name in first}
    result = CliRunner().invoke(app, [*words, "--splits", "2"])
    assert result.exit_code == 0, result.output
    assert "2 of 4 records exist already" in result.output
    assert names() == first | {"synthetic-1-auto.json", "synthetic-1-gcn.json"}
    after = {name: (tmp_path / "runs" / name).stat().st_mtime_ns for name in first}
    assert after == before
    record = json.loads((tmp_path / "runs" / "synthetic-1-gcn.json").read_text())
    assert (record["runs"], len(record["chosen"]), record["epochs"]) == (2, 2, 2)
    assert str(tmp_path) not in (tmp_path / "README.md").read_text()
    result = CliRunner().invoke(app, [*words, "--splits", "1", "--fresh"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "synthetic-0-gcn.json").stat().st_mtime_ns > before[
        "synthetic-0-gcn.json"
    ]


def test_an_interrupted_run_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rawlsgcn, "auto", perfect, raising=False)

    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "train_rival", interrupt)
    words = ["--datasets", "synthetic", "--splits", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 130
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["synthetic-0-auto.json"]
    assert "100.00" in (tmp_path / "README.md").read_text()


def made(graph: str, split: int, model: str, accuracy: float, low: float, bias: float) -> dict:
    host = {"processor": "some", "gpu": None, "threads": 2, "python": "3", "compiled": True}
    return {
        "graph": graph,
        "split": split,
        "model": model,
        "accuracy": accuracy,
        "low_degree_accuracy": low,
        "calibrated_bias": bias,
        "seconds": 50.0,
        "peak_memory_mb": 1024.0,
        "runs": 96,
        "device": "cpu",
        "machine": host,
        "versions": {"torch": "2"},
        "command": "python -m benchmarks.auto",
    }


def test_intervals_are_those_of_students_t() -> None:
    # scipy.stats.t.interval(0.95, 3, 2.5, sem([1, 2, 3, 4]))
    found = t_interval([1, 2, 3, 4])
    assert asdict(found) == pytest.approx(
        {"mean": 2.5, "low": 0.4457397, "high": 4.5542603, "splits": 4}
    )
    assert asdict(t_interval([2.0])) == {"mean": 2.0, "low": None, "high": None, "splits": 1}


def test_differences_are_paired_and_the_bias_is_a_ratio_of_means() -> None:
    rows = [made("cora-ml", s, "auto", 80 + s, 70, 0.1 * (s + 1)) for s in range(3)]
    rows += [made("cora-ml", s, "gcn", 79 + s, 71, 0.4) for s in range(4)]
    summary = Summary(rows)
    found = summary.difference("cora-ml", "gcn", "accuracy")
    assert found is not None
    assert (found.mean, found.low, found.high, found.splits) == (1, 1, 1, 3)
    assert summary.bias_ratio("cora-ml") == pytest.approx(0.5)
    assert summary.mean("cora-ml", "gcn", "accuracy") == 80.5
    assert summary.difference("cora-ml", "gat", "accuracy") is None
    assert summary.better_at_both("gcn") == []


def outcomes(summary: Summary) -> dict[str, str]:
    return {check.condition: check.outcome for check in summary.checks()}


def seven(low: float, bias: float, splits: int = 10) -> list[dict]:
    rows = []
    for graph in CATALOG:
        for split in range(splits):
            noise = 0.1 * (-1) ** split
            rows.append(made(graph, split, "auto", 81 + noise, 70 + low + noise, bias))
            rows.append(made(graph, split, "gcn", 80, 70, 1.0))
            rows.append(made(graph, split, "gat", 82, 60, 1.0))
    return rows


def test_checks_hold_fail_or_are_not_measured() -> None:
    good, bad = outcomes(Summary(seven(2, 0.4))), outcomes(Summary(seven(-1, 0.6)))
    against_gcn = list(good)[:5]
    assert {good[each] for each in against_gcn} == {HOLDS}
    assert [bad[each] for each in against_gcn] == [HOLDS, FAILS, FAILS, FAILS, FAILS]
    assert good["aim: low-degree accuracy 3 points higher on average"] == FAILS
    assert list(good.values())[7:10] == [MISSING, MISSING, HOLDS]
    assert outcomes(Summary([]))[against_gcn[0]] == MISSING
    few = outcomes(Summary(seven(2, 0.4, splits=9)))
    assert {few[each] for each in against_gcn} == {MISSING}


def test_a_rival_that_is_better_in_both_is_named() -> None:
    rows = [row for row in seven(2, 0.4) if row["model"] != "gat" or row["graph"] != "citeseer"]
    rows += [made("citeseer", split, "gat", 90, 90, 1.0) for split in range(10)]
    summary = Summary(rows)
    assert summary.better_at_both("gat") == ["citeseer"]
    check = next(each for each in summary.checks() if each.condition.startswith("GAT"))
    assert (check.outcome, check.measured) == (FAILS, "Citeseer of 7")


def test_the_page_shows_what_is_missing_as_a_dash(tmp_path: Path) -> None:
    rows = seven(2, 0.4, splits=2)
    rows = [row for row in rows if (row["graph"], row["model"]) != ("citeseer", "gat")]
    rows[0]["calibrated_bias"] = None
    (tmp_path / "runs").mkdir()
    for row in rows:
        Task(row["graph"], row["split"], row["model"]).file(tmp_path).write_text(json.dumps(row))
    page.write(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "| Citeseer | GAT | - | - | - | - | - |" in text
    assert "| Citeseer | auto | 81.00 | 72.00 | 0.4000 | 96 | 2 |" in text
    # Two splits, differences 0.9 and 1.1: 1 ± 12.706 · 0.1
    assert "| Citeseer | +1.00 (-0.27 to +2.27) | +2.00 (+0.73 to +3.27) | 0.40 | 2 |" in text
    assert "nan" not in text.lower()
    kept = json.loads((tmp_path / "auto.json").read_text())
    assert kept["graphs"]["citeseer"]["auto_minus"]["gcn"]["bias_ratio_of_means"] == 0.4
    assert (tmp_path / "auto.png").stat().st_size > 10_000


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text("{")
    with pytest.raises(rawlsgcn.RawlsError, match=r"x\.json is not a record"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rivals", "gatt"], "did you mean gat"),
        (["--datasets", "photo"], "amazon-photo"),
        (["--rivals", "gcn,gcn"], "appears twice"),
    ],
)
def test_unknown_names_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert said in result.stderr


def timed(graph: str, device: str, seconds: float | None, search: float) -> dict[str, Any]:
    host = {"gpu": "NVIDIA H200" if device == "cuda" else None, "threads": 2}
    record = {"graph": graph, "device": device, "machine": host, "peak_memory_mb": 1000.0}
    return record | {"seconds": seconds, "search_seconds": search}


def test_times_are_checked_with_their_limits() -> None:
    said = outcomes(Summary([], [timed(graph, "cpu", 44, 40) for graph in SECONDS]))
    held = [condition for condition, outcome in said.items() if outcome == "holds"]
    assert len([each for each in held if "two cores" in each]) == len(SECONDS)
    assert "its peak memory under 4 GB on these four graphs" in held
    slow = outcomes(Summary([], [timed("citeseer", "cpu", 46, 40)]))
    assert slow["Citeseer: the whole command in at most 45 s on two cores"] == "does not hold"
    gpu = outcomes(Summary([], [timed(graph, "cuda", None, 5) for graph in CATALOG]))
    assert gpu["each graph in at most 15 s on an H200, the search"] == "holds"
    assert gpu["each graph in at most 15 s on an H200, the whole command"] == "not measured yet"
    gpu = outcomes(Summary([], [timed(graph, "cuda", 16, 5) for graph in CATALOG]))
    assert gpu["each graph in at most 15 s on an H200, the whole command"] == "does not hold"


def test_the_command_is_timed_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def started(words: list[str], **_: Any) -> SimpleNamespace:
        """Stand in for the process."""
        calls.append(words)
        figures = {"seconds": {"train": 1e-9}, "peak_memory_mb": 600.0}
        Path(words[words.index("--json") + 1]).write_text(json.dumps(figures))
        return SimpleNamespace(returncode=2 if "chameleon" in words else 0, stderr="it failed\n")

    monkeypatch.setattr(times, "subprocess", SimpleNamespace(run=started))
    words = ["--datasets", "synthetic", "--times", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (record,) = times.read_times(tmp_path)
    assert record["seconds"] > record["search_seconds"] == 1e-9
    assert record["command"].startswith("rawlsgcn auto --dataset synthetic")
    assert "whole command" in (tmp_path / "README.md").read_text(encoding="utf-8")
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, again.output
    assert len(calls) == 1  # nothing is timed twice
    failed = CliRunner().invoke(app, ["--datasets", "chameleon", *words[2:]])
    assert (failed.exit_code, "it failed" in failed.stderr) == (2, True)
    (tmp_path / "times" / "broken.json").write_text("{}", encoding="utf-8")
    with pytest.raises(rawlsgcn.RawlsError, match="not a record of times"):
        times.read_times(tmp_path)
