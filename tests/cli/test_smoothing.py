"""The command smooth: its summary, what it keeps, and one sentence for what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rawlsgcn.cli import app
from rawlsgcn.graphs import synthetic
from rawlsgcn.graphs.shards import Shards, write_shards
from rawlsgcn.methods import find_method
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm, open_smoothed


def launch(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(synthetic(300), 3, tmp_path_factory.mktemp("shards")).folder


def test_what_it_writes_is_found_by_the_same_settings(folder: Path) -> None:
    changes = {"steps": "3", "normalization": "renormalized"}
    words = ["smooth", "--shards", folder, "--set", "steps=3", "--normalization", "renormalized"]
    result = launch(*words, "--json", "-", "--device", "cpu")
    assert result.exit_code == 0
    about = json.loads(result.stdout)
    shards, settings = Shards(folder), find_method("smoothed-mlp").configure(changes)
    found = open_smoothed(shards, SmoothedForm.of(shards, settings))
    assert about["folder"] == str(found.folder)
    assert (about["nodes"], about["features"]) == (len(found), found.num_features)
    assert about["blocks"] == [[0, found.num_features]]
    assert (about["steps"], about["teleport"], about["processes"]) == (3, 0.1, 1)
    before = found.read(0, 300)
    again = launch(*words)
    assert "already" in again.stdout
    found = open_smoothed(shards, SmoothedForm.of(shards, settings))
    np.testing.assert_array_equal(found.read(0, 300), before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--memory 1MB", "1 MB of memory are too little"),
        ("--memory many", "is no amount of memory"),
        ("--set inputs=both", "inputs=both needs the whole graph in memory: use inputs=smoothed"),
        ("--set features=tf-idf", "features=tf-idf needs the whole graph in memory"),
        ("--set dropout=0.2", "dropout does not change what smoothing gives, it is for 'train'"),
        ("--set teleport=0", "teleport must be more than 0"),
        ("--normalization row", "unknown normalization 'row'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder: Path, words: str, message: str) -> None:
    result = launch("smooth", "--shards", folder, "--device", "cpu", *words.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert launch("smooth", "--shards", folder / "none").exit_code == 2
