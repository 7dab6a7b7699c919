"""``rawlsgcn reproduce``: what it prints, how it ends, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("optuna")

from rawlsgcn.cli import app

ONE = ("--datasets", "synthetic", "--methods", "gcn", "--seeds", "1", "--device", "cpu")


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *(str(word) for word in words)])


def test_a_cell_with_its_verdict_and_the_same_as_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("effectiveness", *ONE, "--out", out, "--json", tmp_path / "all.json")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1 cell (a method on a graph) with 1 trial (settings, each with")
    assert "GCN" in done.stdout
    assert "reproduced" in done.stdout
    shown = json.loads((tmp_path / "all.json").read_text())
    assert shown == json.loads((out / "results.json").read_text())
    accuracy = shown["cells"][0]["chosen"]["validation"]["accuracy"]["mean"]
    assert f"{accuracy:.2f}" in done.stdout

    again = call("effectiveness", *ONE, "--out", out)
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    assert call("effectiveness", *ONE, "--out", out, "--resume").exit_code == 0


def test_out_of_time_is_no_error(tmp_path: Path) -> None:
    done = call("effectiveness", *ONE, "--out", tmp_path / "out", "--budget", 0)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "1 of 1 cells are not finished. Next is rawlsgcn/paper/synthetic/gcn: continue" in said


def test_wrong_words_are_one_sentence(tmp_path: Path) -> None:
    for words in (("efficient",), ("all", "--datasets", "corra"), ("all", "--methods", "gnc")):
        done = call(*words, "--out", tmp_path / "out")
        assert done.exit_code == 2
        assert len(done.stderr.strip().splitlines()) == 1
    done = call("--out", tmp_path / "none", "--readme", tmp_path / "README.md")
    assert done.exit_code == 2
    assert "no results" in done.stderr
    assert not (tmp_path / "out").exists()


def test_damaged_results_are_one_sentence(tmp_path: Path) -> None:
    damaged = {"rawlsgcn": 1, "cells": [{"method": 3}], "claims": None, "made": [None]}
    (tmp_path / "results.json").write_text(json.dumps(damaged), encoding="utf-8")
    done = call("--out", tmp_path, "--readme", tmp_path / "README.md")
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "results.json" in done.stderr


def test_help_loads_neither_torch_nor_optuna() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from rawlsgcn.cli import app; "
        "assert CliRunner().invoke(app, ['reproduce', '--help']).exit_code == 0; "
        "sys.exit('torch' in sys.modules or 'optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
