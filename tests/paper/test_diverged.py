"""A run that ended in NaN or infinity is never chosen nor averaged, and is called diverged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.paper.plan import FIGURES, Cell, Plan, Point, best
from rawlsgcn.paper.reproduction import reproduce, unfinished
from rawlsgcn.paper.significance import bias_significance
from rawlsgcn.paper.trials import train_points

WILD = Cell(
    *("paper", "synthetic", "rawlsgcn-graph"),
    grid={"lr": (1e30, 1e-6)},
    changes={"epochs": 3},
    seeds=(0, 1),
)


def record(values: dict[str, Any], accuracy: list[float], bias: list[float | None]) -> Any:
    runs: dict[str, Any] = dict.fromkeys(FIGURES, accuracy)
    return {"values": values, "runs": runs | {"bias": bias, "calibrated_bias": bias}}


@pytest.mark.parametrize("by", ["validation_accuracy", "accuracy"])
def test_a_diverged_run_is_never_the_best(by: str) -> None:
    lost = record({"lr": 1.0}, [90.0, 90.0], [0.1, None])
    kept = record({"lr": 0.1}, [10.0, 10.0], [0.1, 0.1])
    assert best([lost, kept], by) is kept
    assert best([lost], by) is None
    assert best([], by) is None


def test_a_quick_search_that_diverged_ends_with_nothing() -> None:
    cell = Cell("paper", "synthetic", "redress", grid={"alpha": (1.0, 2.0)}, seeds=(0, 1))
    search = cell.points(True, {})
    done = {point.key: record(dict(point.values), [90.0], [None]) for point in search}
    assert cell.points(True, done) == search
    done[search[1].key] = record({"alpha": 2.0}, [10.0], [0.5])
    assert cell.points(True, done)[2:] == [Point({"alpha": 2.0}, (0, 1))]


def test_a_rate_that_diverges_is_not_chosen_and_keeps_no_figure() -> None:
    """Two rates trained as one: the first gives NaN, whose largest class is the first."""
    points = WILD.points(False, {})
    lost, kept = [record for record, _ in train_points(WILD, points, "cpu", None)]
    assert all(values == [None, None] for values in lost["runs"].values())
    assert all(math.isfinite(value) for values in kept["runs"].values() for value in values)
    for by in ("validation_accuracy", "accuracy"):
        assert best([lost, kept], by) is kept


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cell that diverges at one of its two rates, and one that diverges as it is."""
    out = tmp_path_factory.mktemp("wild") / "out"
    plan = Plan(parts=("effectiveness",), datasets=("synthetic",), methods=("gcn",), seeds=(0, 1))
    lost = Cell("paper", "synthetic", "gcn", changes={"epochs": 3, "lr": 1e30}, seeds=(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "cells", lambda self: [lost, WILD])
        reproduce(plan, out, device="cpu")
    return out


def test_reproduce_says_that_it_diverged(wild: Path) -> None:
    results = json.loads((wild / "results.json").read_text())
    cells = {cell["method"]: cell for cell in results["cells"]}
    assert cells["gcn"]["status"] == "diverged"
    assert cells["gcn"]["chosen"] == {"validation": None, "test": None}
    assert cells["rawlsgcn-graph"]["status"] == "finished"
    for chosen in cells["rawlsgcn-graph"]["chosen"].values():
        assert chosen["values"] == {"lr": 1e-6}
    said = "In 2 of 3 trials a run diverged (NaN or infinity): none was chosen"
    for name in ("index.html", "tables.md"):
        text = (wild / name).read_text()
        assert f"{said}, and there are no results for paper/synthetic/gcn." in text
        assert "nan" not in text.lower().replace("(nan or", "")
    assert "<td>diverged (2 of 2 runs)</td>" in (wild / "index.html").read_text()


def test_a_diverged_cell_is_done_and_not_tried_again(wild: Path) -> None:
    results = json.loads((wild / "results.json").read_text())
    plan = Plan(parts=("effectiveness",), datasets=("synthetic",), methods=("gcn",), seeds=(0, 1))
    assert unfinished(results, plan) == ([], [])


def test_significance_refuses_to_test_a_diverged_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from rawlsgcn.experiments import comparison

    plain = comparison.compare

    def wild(graph: Any, methods: Any, **options: Any) -> Any:
        return plain(graph, methods, epochs=3, lr=1e30, **options)

    monkeypatch.setattr(comparison, "compare", wild)
    with pytest.raises(RawlsError, match=r"GCN diverged.*lower rate"):
        bias_significance(["synthetic"], seeds=[0], draws=10, device="cpu")
