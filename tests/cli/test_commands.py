"""The command line: what it prints, where it prints it, and how it fails."""

from __future__ import annotations

import html
import json
import os
import pickle
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small_pool import small_pool
from typer.testing import CliRunner, Result

import rawlsgcn as rg
from rawlsgcn.cli import app

QUICK = ["--epochs", "2", "--seeds", "2"]
FIELDS = {
    *("dataset", "method", "normalization", "lr", "epochs", "seeds", "device", "parameters"),
    *("accuracy", "bias", "calibrated_bias", "low_degree_accuracy", "high_degree_accuracy"),
    *("seconds", "peak_memory_mb"),
}


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result: Result, *words: str) -> None:
    """One sentence on stderr, status 2, nothing on stdout."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("rawlsgcn: ")
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in lines[0]


@pytest.fixture
def graph_files(tmp_path: Path) -> dict[str, Path]:
    """A graph of 120 nodes as an edge list with features and labels in files of their own."""
    rng = np.random.default_rng(0)
    n = 120
    labels = np.arange(n) % 2
    pairs = rng.integers(0, n, (600, 2))
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (same | (rng.random(600) < 0.2))]
    files = {name: tmp_path / f"{name}.csv" for name in ("edges", "features", "labels")}
    files["edges"].write_text(
        "source,target\n" + "".join(f"n{a},n{b}\n" for a, b in pairs), encoding="utf-8"
    )
    features = rng.random((n, 5)) + labels[:, None]
    rows = "".join(f"n{i}," + ",".join(f"{v:.4f}" for v in features[i]) + "\n" for i in range(n))
    files["features"].write_text("node,a,b,c,d,e\n" + rows, encoding="utf-8")
    files["labels"].write_text(
        "node,label\n" + "".join(f"n{i},{labels[i]}\n" for i in range(n)), encoding="utf-8"
    )
    return files


def own_graph(files: dict[str, Path]) -> list[str]:
    options = [("--graph", "edges"), ("--features", "features"), ("--labels", "labels")]
    return [str(word) for option, name in options for word in (option, files[name])]


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys\nfrom rawlsgcn.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules and 'pandas' not in sys.modules, 'heavy imports'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_help_names_every_method() -> None:
    from rawlsgcn.methods.registry import BUILT_IN

    shown = "".join(call("train", "--help").output.split()).replace("│", "")
    assert all(name in shown for name in BUILT_IN)


def test_a_page_names_every_command_and_the_readme_links_to_pages_that_are_there() -> None:
    root = Path(__file__).resolve().parents[2]
    readme = (root / "README.md").read_text(encoding="utf-8")
    page = (root / "docs/command-line.md").read_text(encoding="utf-8")
    block = page.split("```")[1]
    listed = set(re.findall(r"^rawlsgcn (\w+)", block, re.M))
    assert listed == {each.callback.__name__ for each in app.registered_commands if each.callback}
    links = set(re.findall(r"\]\(([^)#:]+)\)", readme))
    assert {
        "docs/audit.md",
        "docs/results.md",
        "docs/which-differences-are-significant.md",
    } <= links
    assert not [link for link in links if not (root / link).exists()]


@pytest.mark.slow
def test_a_terminal_of_plain_ascii_is_no_obstacle() -> None:
    words = ["train", "--dataset", "synthetic", "--method", "gcn", *QUICK]
    done = subprocess.run(
        [sys.executable, "-m", "rawlsgcn", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert "GCN" in done.stdout


def test_json_on_stdout_is_pure_and_has_every_field() -> None:
    result = call("train", "--dataset", "synthetic", "--method", "gcn", *QUICK, "--json", "-")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert set(figures) >= FIELDS
    assert figures["dataset"] == "synthetic"
    assert figures["synthetic"] is True
    assert figures["seeds"] == [0, 1]
    assert figures["epochs"] == 2
    assert set(figures["seconds"]) == {"prepare", "train", "evaluate"}
    for name in ("accuracy", "bias", "low_degree_accuracy"):
        assert figures[name]["mean"] == pytest.approx(np.mean(figures[name]["runs"]))
        assert figures[name]["std"] == pytest.approx(np.std(figures[name]["runs"]))
    assert "synthetic" in result.stderr


def test_the_same_command_gives_the_same_numbers() -> None:
    words = ["train", "--dataset", "synthetic", "--method", "rawlsgcn-grad", *QUICK, "--json", "-"]
    first, second = (json.loads(call(*words).stdout) for _ in range(2))
    for figures in (first, second):
        del figures["seconds"], figures["peak_memory_mb"]
    assert first == second


@pytest.mark.slow
def test_compare_writes_a_list_a_page_and_the_figures(tmp_path: Path) -> None:
    out, figures = tmp_path / "out", tmp_path / "figures.json"
    words = ["--dataset", "synthetic", *QUICK, "--out", out, "--json", figures]
    result = call("compare", *words, "--methods", "gcn,rawlsgcn-graph")
    assert result.exit_code == 0, result.output
    found = json.loads(figures.read_text())
    assert [each["method"] for each in found] == ["gcn", "rawlsgcn-graph"]
    assert {path.name for path in out.iterdir()} == {
        *("by_degree-gcn.png", "by_degree-rawlsgcn-graph.png", "degrees.png"),
        *("accuracy_bias.png", "side_by_side.png", "report.html", "results.json"),
        *("predictions-gcn.csv", "predictions-rawlsgcn-graph.csv"),
    }
    assert "RawlsGCN-Graph" in result.stdout


def test_the_terminal_prints_the_verdict_of_the_page(tmp_path: Path) -> None:
    options = ["--dataset", "synthetic", "--epochs", "20", "--lr", "0.1", "--seeds", "1"]
    for name, words in (
        ("train", ["--method", "gcn"]),
        ("compare", ["--methods", "gcn,rawlsgcn-graph"]),
    ):
        result = call(name, *options, *words, "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
        page = html.unescape((tmp_path / name / "report.html").read_text(encoding="utf-8"))
        (headline,) = re.findall(r'<h2 id="verdict">(.*?)</h2>', page, re.DOTALL)
        shown = " ".join(result.stdout.split())
        assert " ".join(headline.replace("\N{NO-BREAK SPACE}", " ").split()) in shown
        assert ("low-degree nodes" in shown.rpartition(headline.split()[-1])[2]) is (
            name == "compare"
        )


def test_the_verdict_says_which_of_several_runs_it_is_about() -> None:
    options = ["--dataset", "synthetic", "--method", "gcn", "--epochs", "3"]
    said = "This is about one run, the one with the highest validation accuracy: seed "
    assert said in " ".join(call("train", *options, "--seeds", "2").stdout.split())
    assert "This is about" not in call("train", *options, "--seeds", "1").stdout


def test_a_model_is_kept_and_predicts_the_same_later(
    tmp_path: Path, graph_files: dict[str, Path]
) -> None:
    model, out = tmp_path / "model", tmp_path / "predictions.csv"
    trained = call("train", *own_graph(graph_files), *QUICK, "--split", "random", "--out", model)
    assert trained.exit_code == 0, trained.output
    names = {"model.safetensors", "config.json", "metrics.json", "by_degree.png", "report.html"}
    names |= {"predictions.csv"}
    assert {path.name for path in model.iterdir()} == names
    options = own_graph(graph_files)[:4]  # no labels are needed to predict
    result = call("predict", "--model", model, *options, "--out", out)
    assert result.exit_code == 0, result.output
    lines = out.read_text().splitlines()
    assert lines[0] == "node,predicted,p_0,p_1,split"
    assert len(lines) == 121
    assert lines[1].startswith("n")
    again = call("predict", "--model", model, *options, "--out", tmp_path / "P.TSV", "--json", "-")
    figures = json.loads(again.stdout)
    assert figures["nodes"] == sum(figures["predicted"]) == 120
    assert (figures["method"], figures["classes"]) == ("rawlsgcn-graph", 2)
    assert [int(line.split(",")[1]) for line in lines[1:]].count(1) == figures["predicted"][1]
    assert (tmp_path / "P.TSV").read_text().splitlines() == [x.replace(",", "\t") for x in lines]


def test_prediction_says_when_features_are_negative_as_they_never_were_in_training(
    tmp_path: Path, graph_files: dict[str, Path]
) -> None:
    model, out = tmp_path / "model", tmp_path / "p.csv"
    call("train", *own_graph(graph_files), *QUICK, "--split", "random", "--out", model)
    text = graph_files["features"].read_text()
    first = text.splitlines()[1]
    graph_files["features"].write_text(text.replace(first, "n0,-1,1,1,1,1"))
    words = ["predict", "--model", model, *own_graph(graph_files)[:4], "--out", out, "--json", "-"]
    assert any("negative" in note for note in json.loads(call(*words).stdout)["notes"])


def test_balance_writes_a_doubly_stochastic_matrix(tmp_path: Path) -> None:
    from scipy import sparse

    out = tmp_path / "balanced.npz"
    result = call("balance", "--dataset", "synthetic", "--out", out)
    assert result.exit_code == 0, result.output
    matrix = sparse.load_npz(out)
    assert abs(matrix.sum(0) - 1).max() < 1e-8
    assert abs(matrix.sum(1) - 1).max() < 1e-8
    assert abs(matrix - matrix.T).max() == 0


def test_balance_keeps_the_ids(tmp_path: Path, graph_files: dict[str, Path]) -> None:
    out = tmp_path / "balanced.npz"
    result = call("balance", "--graph", graph_files["edges"], "--out", out)
    assert result.exit_code == 0, result.output
    with np.load(out, allow_pickle=False) as kept:
        ids = kept["node_ids"].tolist()
        assert len(ids) == len(kept["scale"])
    edges = {line.split(",")[0] for line in graph_files["edges"].read_text().split()[1:]}
    assert edges <= set(ids)


def test_balance_as_well_as_float64_can_is_no_failure(tmp_path: Path) -> None:
    out = tmp_path / "b.csv"
    words = ["balance", "--dataset", "synthetic", "--out", out, "--json", "-"]
    best = call(*words, "--tol", "0")
    assert best.exit_code == 0, best.output
    assert json.loads(best.stdout)["residual"] < 1e-12
    assert "not met" in best.stderr or json.loads(best.stdout)["converged"]
    out.unlink()
    short = call(*words, "--max-iterations", "3")
    refused(short, "residual", "3 products", "max_iterations")
    assert not out.exists()


def test_datasets_lists_all_eight(tmp_path: Path) -> None:
    result = call("datasets", "--data-root", tmp_path, "--json", "-")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert len(rows) == 8
    assert [row["on_disk"] for row in rows] == [False] * 7 + [True]


def test_a_damaged_dataset_does_not_hide_the_others(tmp_path: Path) -> None:
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    (raw / "amazon_electronics_photo.npz").write_bytes(b"cut short")
    result = call("datasets", "--data-root", tmp_path, "--json", "-")
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert str(raw) in rows["amazon-photo"]["damaged"]
    assert rows["synthetic"]["nodes"] == 3000
    assert "damaged" not in rows["synthetic"]
    assert "damaged" in result.stderr


def test_compare_takes_a_normalization_with_its_default_methods() -> None:
    words = ["compare", "--dataset", "synthetic", "--epochs", "1", "--seeds", "1", "--json", "-"]
    result = call(*words, "--normalization", "row")
    assert result.exit_code == 0, result.output
    kinds = [each["normalization"] for each in json.loads(result.stdout)]
    assert kinds == ["renormalized", "row", "row"]
    assert "GCN has no choice of normalization" in result.stderr


# Bad input: one sentence, status 2, nothing half-written.


def test_an_unknown_method_or_dataset_offers_the_nearest() -> None:
    refused(call("train", "--dataset", "synthetic", "--method", "gnc"), "gnc", "did you mean gcn")
    refused(call("train", "--dataset", "amazon-foto"), "did you mean amazon-photo")
    refused(call("compare", "--dataset", "synthetic", "--methods", "gcn,dsgnc"), "dsgnc")


def test_a_missing_file(tmp_path: Path) -> None:
    refused(call("train", "--graph", tmp_path / "none.npz"), "none.npz")
    refused(call("predict", "--model", tmp_path, "--graph", __file__, "--out", "p.csv"), "no model")


def test_a_corrupt_npz(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.npz", tmp_path / "cut.npz"
    np.savez(whole, edge_index=np.zeros((2, 1000), dtype=int))
    cut.write_bytes(whole.read_bytes()[:500])
    refused(call("train", "--graph", cut), "cut.npz")
    cut.write_bytes(b"not an archive at all")
    refused(call("train", "--graph", cut), "cut.npz")


class Trap:
    """A pickle that would leave a file behind if anybody unpickled it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


@pytest.mark.parametrize("suffix", ["npz", "npy", "pt", "csv", "parquet"])
def test_a_pickle_in_disguise_is_never_unpickled(tmp_path: Path, suffix: str) -> None:
    sprung, file = tmp_path / "sprung", tmp_path / f"graph.{suffix}"
    if suffix == "npz":
        np.savez(file, edge_index=np.array([Trap(sprung)], dtype=object))
    elif suffix == "pt":
        torch.save({"edge_index": Trap(sprung)}, file)
    else:
        file.write_bytes(pickle.dumps(Trap(sprung)))
    refused(call("train", "--graph", file), f"graph.{suffix}")
    assert not sprung.exists()


def test_a_csv_with_a_text_cell(graph_files: dict[str, Path]) -> None:
    text = graph_files["features"].read_text().replace("n7,", "n7,lots,", 1)
    lines = text.splitlines()
    lines[8] = ",".join(lines[8].split(",")[:6])
    graph_files["features"].write_text("\n".join(lines) + "\n")
    refused(call("train", *own_graph(graph_files), *QUICK), "features.csv", "lots")


def test_wrong_options(tmp_path: Path) -> None:
    refused(call("train"), "--dataset NAME or --graph FILE")
    refused(call("train", "--dataset", "synthetic", "--graph", __file__), "one graph")
    refused(call("train", "--dataset", "synthetic", "--lr", "-1"), "lr must be a positive number")
    refused(call("train", "--dataset", "synthetic", "--set", "hidden"), "name=value")
    refused(
        call("train", "--dataset", "synthetic", "--set", "hidden_channels=wide"), "whole number"
    )
    refused(call("train", "--dataset", "synthetic", "--device", "tpu"), "unknown device")
    refused(call("train", "--dataset", "synthetic", "--normalization", "rows"), "row")
    refused(call("balance", "--dataset", "synthetic", "--out", tmp_path / "b.xls"), ".npz")
    if not torch.cuda.is_available():
        refused(call("train", "--dataset", "synthetic", "--device", "cuda"), "--device cpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--seeds", "0"], "--seeds"),
        (["train", "--lr", "abc"], "--lr"),
        (["train", "--sead", "3"], "--seeds"),
        (["tune", "--patience", "3"], "--set patience=value"),
        (["train", "--hidden-channels", "8"], "--set hidden_channels=value"),
        (["trian"], "did you mean 'train'"),
        (["predict", "--out", "p.csv"], "--model"),
        (["train", "--dataset", "synthetic", "--json", ""], "it is empty"),
        (["train", "--dataset", "synthetic", "--out", ""], "it is empty"),
        (["demo", "--nodes", "119"], "--nodes"),
        (["balance", "--dataset", "synthetic", "--out", "b.csv", "--max-iterations", "1"], "--max"),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_too(words: list[str], said: str) -> None:
    result = call(*words)
    refused(result)
    assert said in result.stderr.lower()


def test_no_command_shows_the_help() -> None:
    result = call()
    assert "train" in result.output
    assert "Traceback" not in result.output


def test_the_smallest_demo_runs(tmp_path: Path) -> None:
    result = call("demo", "--nodes", "120", "--seeds", "1", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("width", [0, 10**13, 10**30])
def test_a_width_that_no_memory_holds_is_refused_before_the_work(width: int) -> None:
    words = ["train", "--dataset", "synthetic", "--method", "gcn", *QUICK]
    refused(
        call(*words, "--set", f"hidden_channels={width}"),
        "hidden_channels must be from 1 to 1,000,000",
    )


def test_a_network_that_fits_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        torch.empty(2**62, dtype=torch.uint8)

    monkeypatch.setattr("rawlsgcn.experiments.fitting.train_runs", full)
    refused(call("train", "--dataset", "synthetic", "--method", "gcn", *QUICK), "out of memory")


@pytest.mark.parametrize("epochs", [0, -1, 10**9])
def test_epochs_that_train_nothing_or_for_ever_are_refused(epochs: int) -> None:
    refused(call("train", "--dataset", "synthetic", "--epochs", epochs), "epochs must be from 1 to")


@pytest.mark.parametrize("command", ["train", "compare", "tune", "predict", "balance"])
def test_an_output_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No graph is read: the refusal comes first."""
    for room in ("train", "compare", "graphs"):
        late = f"rawlsgcn.cli.{room}.read_graph"
        monkeypatch.setattr(late, lambda *args, **kwargs: pytest.fail("too late"))
    file = tmp_path / "file"
    file.write_text("mine")
    given = {
        "predict": ["--dataset", "synthetic", "--model", tmp_path, "--out", tmp_path / "p.csv"],
        "balance": ["--dataset", "synthetic", "--out", tmp_path / "b.npz"],
    }.get(command, ["--dataset", "synthetic"])
    refused(call(command, *given, "--json", file / "a.json"), "cannot write", "a.json")
    refused(call(command, *given, "--json", tmp_path), "it is a folder")
    below = file / ("x.csv" if command in ("predict", "balance") else "x")
    refused(call(command, *given, "--out", below), "cannot write", str(below))
    if command in ("predict", "balance"):
        refused(call(command, *given, "--out", tmp_path / "a.xls"), "a.xls", ".npz")


def test_nothing_that_is_read_is_overwritten(
    tmp_path: Path, graph_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one result by another: of every command that reads files and writes one."""
    edges, labels = graph_files["edges"], graph_files["labels"]
    before = {file: file.read_bytes() for file in graph_files.values()}
    own = own_graph(graph_files)
    for command in (["train", *QUICK], ["compare", *QUICK], ["tune", "--grid", "lr=0.1"]):
        refused(call(*command, *own, "--json", labels), "--json", "overwrite", str(labels))
    audit = ["audit", "--graph", edges, "--labels", labels, "--predictions", labels]
    refused(call(*audit, "--out", labels), "--out", "overwrite", str(labels))
    refused(call(*audit, "--json", edges), "--json", "overwrite", str(edges))
    refused(
        call(*audit, "--by", graph_files["features"], "--json", graph_files["features"]),
        "overwrite",
    )
    link = tmp_path / "link.html"
    link.symlink_to(labels)
    refused(call(*audit, "--out", link), "--out", "overwrite")
    monkeypatch.chdir(tmp_path)
    refused(call(*audit, "--out", "labels.csv"), "--out", "overwrite")
    both = ["--out", tmp_path / "new", "--json", "new"]
    refused(call(*audit, *both), "--out and --json", "different files")
    balance = ["balance", "--graph", edges]
    refused(call(*balance, "--out", edges), "--out", "overwrite")
    predict = ["predict", "--model", tmp_path, "--graph", edges, "--features", labels]
    refused(call(*predict, "--out", labels), "--out", "overwrite")
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.slow
def test_the_lines_that_the_audit_ends_in_run_as_they_stand(
    tmp_path: Path, graph_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The last line of a page is what was typed, which here is pytest's.
    monkeypatch.setattr("sys.argv", ["rawlsgcn", "audit"])
    labels = pd.read_csv(graph_files["labels"])
    degree = pd.read_csv(graph_files["edges"]).stack().value_counts()
    few = labels["node"].map(degree).fillna(0) <= degree.quantile(0.4)
    labels.assign(label=np.where(few, 1 - labels["label"], labels["label"])).to_csv(
        "my model.csv", index=False
    )
    graph = ["--graph", "edges.csv", "--labels", "labels.csv"]
    audit = ["audit", *graph, "--predictions", "my model.csv", "--resamples", "100"]
    quick = ["--epochs", "1", "--seeds", "1"]
    pages = {"page.html": [], "city.html": ["--by", "city.csv"]}
    labels.assign(label=np.where(few, "Bath", "York")).to_csv("city.csv", index=False)
    lines = []
    for page, more in pages.items():
        done = call(*audit, *more, "--out", page)
        assert done.exit_code == 0, done.output
        lines += re.findall(r"<code>(rawlsgcn .*?)</code>", Path(page).read_text())[:-1]
    lines = [html.unescape(line) for line in lines]
    assert "rawlsgcn compare --graph edges.csv --labels labels.csv --out out" in lines
    assert "--predictions 'my model.csv' --out by-degree.html" in str(lines)
    for line in lines:
        name, *words = shlex.split(line)
        assert name == "rawlsgcn"
        with small_pool():
            done = call(*words, *(quick if words[0] == "compare" else []))
        assert done.exit_code == 0, (line, done.output)


def test_the_page_of_a_training_knows_the_options_of_its_graph(
    tmp_path: Path, graph_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*own_graph(graph_files), *QUICK, "--split", "0.6,0.2,0.2", "--out", "out"]
    done = call("train", *words)
    assert done.exit_code == 0, done.output
    assert "Written to out; page: out/report.html" in done.output
    page = Path("out/report.html").read_text()
    rows = dict(re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td></tr>', page))
    assert rows["split"] == "0.6,0.2,0.2"
    assert [rows[name] for name in ("graph", "features", "labels")] == [
        "edges.csv",
        "features.csv",
        "labels.csv",
    ]


def test_a_model_for_other_features_is_refused(
    tmp_path: Path, graph_files: dict[str, Path]
) -> None:
    model = tmp_path / "model"
    call("train", *own_graph(graph_files), *QUICK, "--split", "random", "--out", model)
    words = ["--dataset", "synthetic", "--out", tmp_path / "p.csv"]
    refused(call("predict", "--model", model, *words), "trained on 5 features")
    (model / "model.safetensors").write_bytes(b"cut")
    refused(call("predict", "--model", model, *words), "model.safetensors")
    (model / "config.json").write_text("[]")
    refused(call("predict", "--model", model, *words), "config.json")


@pytest.mark.slow
def test_a_disk_that_fills_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: the write fails half-way."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    out = tmp_path / "results" / "model"
    words = ["train", "--dataset", "synthetic", *QUICK, "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "rawlsgcn", *words],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip().startswith("rawlsgcn: cannot write into")
    assert len(done.stderr.strip().splitlines()) == 1
    assert list((tmp_path / "results").iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_in_training_exits_130_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "results" / "model"
    words = ["train", "--dataset", "synthetic", "--epochs", "1000000", "--out", str(out)]
    code = (
        "import sys, rawlsgcn.training.stacked.engine as fast\n"
        "from rawlsgcn.cli import app\n"
        "plain = fast.StackedEngine.step\n"
        "def told(self, *args):\n    print('training', flush=True)\n    return plain(self, *args)\n"
        "fast.StackedEngine.step = told\n"
        f"app({words!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background the signal is ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("Training on the whole graph: it fits")
        assert process.stdout.readline() == "training\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert errors.strip().splitlines() == ["rawlsgcn: interrupted: nothing unfinished was written"]
    assert not (tmp_path / "results").exists()


def test_a_file_that_is_not_there_is_refused_before_torch_is_imported() -> None:
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom rawlsgcn.cli import app\napp(sys.argv[1:])"
    )
    for words in (
        ["train", "--graph", "nope.csv"],
        ["auto", "--graph", __file__, "--labels", "nope.csv"],
        ["audit", "--dataset", "synthetic", "--predictions", "nope.csv"],
    ):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (2, "rawlsgcn: nope.csv does not exist\n")


def test_methods_may_be_separated_by_spaces_too() -> None:
    words = ["--dataset", "synthetic", "--epochs", "2", "--seeds", "1", "--json", "-"]
    done = call("compare", *words, "--methods", "gcn rawlsgcn-graph")
    assert [each["method"] for each in json.loads(done.stdout)] == ["gcn", "rawlsgcn-graph"]


def test_tune_takes_epochs_and_names_the_grid_for_several_values() -> None:
    words = ["tune", "--dataset", "synthetic", "--method", "gcn", "--seeds", "1"]
    refused(call(*words, "--set", "lr=0.05,0.01"), "--grid lr=0.05,0.01")
    done = call(*words, "--epochs", "3", "--grid", "lr=0.05,0.01", "--json", "-")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["best"]["epochs"] == 3


def test_an_unknown_method_may_be_one_of_another_package() -> None:
    done = call("train", "--dataset", "synthetic", "--method", "degree-weighted")
    refused(done, "unknown method", "a method of another package must be installed or registered")


def test_an_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    refused(call("train", "--dataset", "synthetic", *QUICK, "--out", file), "not a folder")
    assert file.read_text() == "mine"


def test_the_command_shown_on_a_page_has_no_password_and_no_folder_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rawlsgcn.cli.outputs import typed_command

    typed = ["--storage", "postgresql://me:secret@host/db", "--out", "/home/me/results/paper"]
    monkeypatch.setattr("sys.argv", ["rawlsgcn", "reproduce", *typed])
    shown = typed_command()
    assert "secret" not in shown
    assert "/home" not in shown
    assert "me:…@host/db" in shown
    assert shown.endswith("--out paper")


def test_all_nodes_can_be_judged() -> None:
    """--evaluate all judges every labelled node outside training and validation."""
    graph = rg.synthetic()
    outside = int((~(graph.train_mask | graph.val_mask)).sum())
    assert outside > int(graph.test_mask.sum())
    result = rg.fit(graph, "gcn", seeds=1, epochs=1, evaluate="all")
    assert int(result.mask.sum()) == outside
    words = ["--dataset", "synthetic", *QUICK, "--evaluate", "all", "--json", "-"]
    accuracy = json.loads(call("train", "--method", "gcn", *words).stdout)["accuracy"]["runs"][0]
    assert accuracy * outside / 100 == pytest.approx(round(accuracy * outside / 100))
    wrong = call("train", "--dataset", "synthetic", *QUICK, "--evaluate", "some")
    assert wrong.exit_code == 2


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        ({}, "PASSIVE 1000"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
        ({"GOMP_SPINCOUNT": "7"}, "PASSIVE 7"),
    ],
)
def test_threads_wait_as_the_user_says_and_briefly_otherwise(
    given: dict[str, str], waits: str
) -> None:
    code = (
        "import os, rawlsgcn.cli.base; "
        "print(os.environ['OMP_WAIT_POLICY'], os.environ.get('GOMP_SPINCOUNT'))"
    )
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {k: v for k, v in os.environ.items() if k not in names} | given
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == waits


def test_features_and_labels_of_a_json_graph_may_be_attributes(tmp_path: Path) -> None:
    nodes = [{"id": k, "age": k % 7, "club": "ab"[k % 2]} for k in range(40)]
    links = [{"source": k, "target": (k + 2) % 40} for k in range(40)]
    path = tmp_path / "clubs.json"
    path.write_text(json.dumps({"nodes": nodes, "links": links}), encoding="utf-8")
    words = ["train", "--graph", path, "--labels", "club", "--features", "age", "--split"]
    done = call(*words, "0.5,0.2,0.3", "--epochs", "2", "--seeds", "1", "--json", "-")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["dataset"] == "clubs"
    done = call(*words[:3], "--labels", "clubs", "--epochs", "2")
    assert (done.exit_code, "attribute" in done.stderr) == (2, True)
