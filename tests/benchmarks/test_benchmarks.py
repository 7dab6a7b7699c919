"""The benchmarks: arithmetic, rivals that work, and documents that quote the kept figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.balancing import random_matrix, scipy_matrix
from benchmarks.measurement import Measurement, Timing, timed
from benchmarks.report import markdown, page, write
from benchmarks.rivals import cached_gcn_training, textbook_sinkhorn_knopp
from rawlsgcn._core.kernels import kernels
from rawlsgcn.balancing import balance
from rawlsgcn.graphs import synthetic
from rawlsgcn.methods import Inputs


def test_a_ratio_is_of_medians_in_the_same_unit() -> None:
    ours, rival = Timing([1.0, 2.0, 9.0]), Timing([3.0, 1.0, 2.0], times=10)
    assert (ours.median, rival.median, rival.low, rival.high) == (2, 20, 10, 30)
    assert Measurement("g", "n", ours, rival, "r").ratio == 10
    assert Measurement("g", "n", ours, rival, "r", inverse=True).ratio == 0.1


def test_timing_warms_up_and_repeats() -> None:
    calls: list[int] = []
    took = timed(lambda: calls.append(1), 3, torch.device("cpu"))
    assert len(calls) == 4
    assert len(took.samples) == 3


def test_the_rival_gcn_learns() -> None:
    """A rival that did nothing would be easily beaten."""
    inputs = Inputs.of(synthetic(300, classes=2))
    train = cached_gcn_training(inputs)
    model = next(
        cell.cell_contents for cell in train.__closure__ if hasattr(cell.cell_contents, "eval")
    )
    train(100)
    out = model.eval()(inputs.x.to_dense(), inputs.edge_index)[inputs.train]
    assert (out.argmax(1) == inputs.y[inputs.train]).float().mean() > 0.8


def test_the_rival_balancing_balances_and_ours_agrees() -> None:
    matrix = scipy_matrix(synthetic(200))
    products = textbook_sinkhorn_knopp(matrix, 1e-6)
    assert products > balance(matrix, tol=1e-6).iterations


def test_the_random_matrix_is_symmetric_with_loops() -> None:
    matrix = random_matrix(20_000)
    assert abs(matrix - matrix.T).max() == 0
    assert matrix.diagonal().min() == 1
    assert set(np.unique(matrix.data)) == {1.0}
    assert 0.7 < matrix.nnz / 20_000 < 1.1


@pytest.mark.slow
def test_every_part_runs_and_is_shown(tmp_path: Path) -> None:
    words = ["--datasets", "synthetic", "--repeats", "1", "--limit", "100000"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path), "--json", "-"])
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    groups = {figure["group"] for figure in results["figures"]}
    several = {"balance at scale", "smoothing"} if torch.get_num_threads() > 1 else set()
    several |= {"compiled products"} if kernels() else set()
    one = {"balance at scale, on one core", "smoothing, on one core"}
    assert groups == {"training", "methods", "balance", "sampling"} | one | several
    assert all(figure["ratio"] > 0 for figure in results["figures"])
    assert markdown(results) in (tmp_path / "RESULTS.md").read_text()
    assert results["command"].startswith("python -m benchmarks")
    names = {"RESULTS.md", "results-cpu.json", "scaling-cpu.png"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_page_compares_smoothing_on_two_cores_with_one() -> None:
    def figure(group: str, median: float, threads: int) -> dict[str, object]:
        took = {"median": median, "low": median, "high": median}
        same = {"ours": took, "rival": took, "rival_name": "scipy", "of": "ours / rival"}
        named = {"group": group, "name": "1e5 arcs", "ratio": 1.0, "goal": "at most 1.5"}
        return {**named, **same, "threads": threads}

    machine = {"processor": "any", "threads": 2, "gpu": None, "python": "3", "torch": "2"}
    run = {"command": "x", "parts": ["smoothing"], "machine": machine, "repeats": 1}
    both = [figure("smoothing", 1.0, 2), figure("smoothing, on one core", 1.7, 1)]
    said = markdown({**run, "figures": both, "training_scaling": []})
    assert "### Smoothing, on 2 cores and on one" in said
    row = "| 1e5 arcs | 1.000 (1.000 to 1.000) | 1.700 (1.700 to 1.700): the same on one core |"
    assert f"{row} 1.70 | at least 1.6 |" in said
    assert "cores and on one" not in markdown({**run, "figures": both[:1], "training_scaling": []})


def test_a_run_replaces_those_whose_parts_were_all_measured_again(tmp_path: Path) -> None:
    machine = {"processor": "any", "threads": 1, "gpu": None, "python": "3", "torch": "2"}
    for parts in (["training", "balance"], ["balance"], ["sampling"], ["training"]):
        run = {"command": "x", "parts": parts, "machine": machine, "repeats": 1}
        write({**run, "figures": [], "training_scaling": []}, tmp_path)
    kept = json.loads((tmp_path / "results-cpu.json").read_text())
    assert [run["parts"] for run in kept] == [["balance"], ["sampling"], ["training"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["trainig"], "did you mean training"), (["--datasets", "photo"], "amazon-photo")],
)
def test_unknown_names_are_refused(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_the_figures_in_the_documents_are_the_committed_ones() -> None:
    root = Path(__file__).parents[2]
    runs = json.loads((root / "benchmarks" / "results-cpu.json").read_text())
    published = next(
        figure
        for run in runs
        for figure in run["figures"]
        if figure["name"].endswith("against the published procedure to 1e-2")
    )
    said = (root / "docs" / "balancing.md").read_text()
    milliseconds = published["ours"]["median"] * 1000
    assert f"takes {milliseconds:.1f} ms on two quiet cores, {published['ratio']:.0f} times" in said


def test_the_page_is_drawn_from_the_committed_results() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    assert (folder / "RESULTS.md").read_text() == page(folder)


def test_the_readme_quotes_the_committed_scaling_runs() -> None:
    folder = Path(__file__).parents[2] / "benchmarks"
    said = " ".join((folder / "README.md").read_text().split())
    runs = json.loads((folder / "results-cpu.json").read_text())
    rows = [row for run in runs for row in run["figures"] if "balance at scale" in row["group"]]
    large = [row for row in rows if row["nonzeros"] > 9e5]
    one, two = ([row["ratio"] for row in large if row["threads"] == n] for n in (1, 2))
    for ratio in one:
        assert f"{ratio:.0f} products" in said
    assert f"{two[0]:.1f} at 10⁶ and {min(two[1:]):.1f} to {max(two[1:]):.1f}" in said
    runs = json.loads((folder / "further-scaling-runs.json").read_text())
    factors: dict[int, list[float]] = {1: [], 2: []}
    for run in runs[:2]:
        for threads, found in factors.items():
            rows = [row for row in run["figures"] if row["threads"] == threads]
            ratios = [row["ratio"] for row in rows if row["nonzeros"] > 9e5]
            found.append(max(ratios) / min(ratios))
    for found in factors.values():
        assert "{:.2f} and {:.2f} times".format(*sorted(found)) in said
    small, large = (
        next(row["ratio"] for row in runs[2]["figures"][1::2] if row["nonzeros"] > size)
        for size in (9e5, 3e7)
    )
    assert f"falls from {small:.0f} to {large:.0f}" in said


def test_the_docs_quote_the_committed_gain_of_compiled_products() -> None:
    root = Path(__file__).parents[2]
    runs = json.loads((root / "benchmarks" / "results-cpu.json").read_text())
    rows = [row for run in runs for row in run["figures"] if row["group"] == "compiled products"]
    most = max(row["ratio"] for row in rows)
    assert f"sparse features is up to {most:.1f} times as fast" in " ".join(
        (root / "docs/install.md").read_text().split()
    )
