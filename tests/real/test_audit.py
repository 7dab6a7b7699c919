"""The audit on the paper's graphs: the same bias as training, and what chance has to do with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rawlsgcn as rg
from rawlsgcn.cli import app
from rawlsgcn.experiments.auditing.audit_result import Audit
from rawlsgcn.graphs import load

# With the other slow tests: training on the paper's graphs takes minutes in all.
pytestmark = pytest.mark.slow

METHODS = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad")


@pytest.fixture(scope="module")
def trained(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``rawlsgcn train --out`` wrote, a folder a method."""
    folder = tmp_path_factory.mktemp("trained")
    for method in METHODS:
        said = ["train", "--dataset", "amazon-photo", "--method", method, "--seeds", "2"]
        said += ["--data-root", str(data_root), "--device", "cpu", "--out", str(folder / method)]
        done = CliRunner().invoke(app, said)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def photo(trained: Path, data_root: Path) -> dict[str, object]:
    """The JSON of an audit of the three CSV files, and nothing but them and the graph."""
    said = ["audit", "--dataset", "amazon-photo", "--data-root", str(data_root)]
    for method in METHODS:
        said += ["--predictions", str(trained / method / "predictions.csv")]
    done = CliRunner().invoke(app, [*said, "--json", str(trained / "audit.json")])
    assert done.exit_code == 0, done.output
    kept: dict[str, object] = json.loads((trained / "audit.json").read_text())
    return kept


def test_the_audit_of_csv_files_gives_the_bias_of_training(
    photo: dict[str, list[dict[str, float]]], trained: Path
) -> None:
    for model, method in zip(photo["models"], METHODS, strict=True):
        config = json.loads((trained / method / "config.json").read_text())
        metrics = json.loads((trained / method / "metrics.json").read_text())
        run = config["seeds"].index(config["best_seed"])
        assert abs(model["bias"] - metrics["bias"]["runs"][run]) < 1e-9
        scaling = model["scaling"]
        assert abs(scaling["calibrated_bias"] - metrics["calibrated_bias"]["runs"][run]) < 1e-6
        assert abs(model["accuracy"]["value"] - metrics["accuracy"]["runs"][run]) < 1e-9


def test_on_amazon_photo_the_bias_of_gcn_is_no_chance_and_that_of_rawlsgcn_graph_is(
    photo: dict[str, list[dict[str, dict[str, float]]]],
) -> None:
    gcn, graph, _ = photo["models"]
    for model in (gcn, graph):
        assert model["permutation"]["mean"] == pytest.approx(0.14, abs=0.03)
    assert gcn["permutation"]["p"] < 0.002
    assert graph["permutation"]["p"] > 0.5


def test_on_citeseer_only_the_slope_sees_the_trend(data_root: Path) -> None:
    audit: Audit = rg.fit(load("citeseer", root=data_root), "gcn", seeds=1, device="cpu").audit()
    model = audit.models[0]
    assert model.permutation.p > 0.05
    assert model.slope is not None
    assert model.slope.loss.high < 0
    assert model.slope.loss_correlation == pytest.approx(-0.2, abs=0.05)
    assert np.isfinite(model.net_variance.unbiased)
