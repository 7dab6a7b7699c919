"""No folder of the user's machine is in a page or a file that a command writes for others."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rawlsgcn.cli import app

NODES = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph, its labels, features and predictions, in a folder that nobody should read of."""
    folder = tmp_path / "secret" / "project"
    folder.mkdir(parents=True)
    rng, nodes = np.random.default_rng(0), np.arange(NODES)
    ends = {"source": np.r_[nodes, nodes], "target": np.r_[(nodes + 1) % NODES, nodes % 7]}
    pd.DataFrame(ends).to_csv(folder / "graph.csv", index=False)
    pd.DataFrame({"node": nodes, "label": nodes % 3}).to_csv(folder / "labels.csv", index=False)
    x = rng.random((NODES, 4))
    table = pd.DataFrame({"node": nodes} | {f"f{i}": x[:, i] for i in range(4)})
    table.to_csv(folder / "x.csv", index=False)
    scores = rng.normal(size=(NODES, 3))
    scores[nodes, nodes % 3] += 1
    table = pd.DataFrame({"node": nodes} | {f"logit_{i}": scores[:, i] for i in range(3)})
    table.to_csv(folder / "model.csv", index=False)
    pd.DataFrame({"node": nodes, "club": nodes // 30}).to_csv(folder / "club.csv", index=False)
    return folder


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["rawlsgcn", *words])
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize(("inside", "joined"), [(False, True), (True, False)])
@pytest.mark.parametrize("command", ["train", "compare", "tune", "audit"])
def test_no_output_names_a_folder_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, folder: Path, command: str, joined: bool, inside: bool
) -> None:
    if inside:
        monkeypatch.chdir(folder.parent)
    files = {"graph": "graph.csv", "labels": "labels.csv"}
    if command == "audit":
        files |= {"predictions": "model.csv", "by": "club.csv", "out": "out/page.html"}
        few = ["--resamples", "100"]
    else:
        files |= {"features": "x.csv", "out": "out"}
        few = ["--seeds", "1", *(["--grid", "epochs=1,2"] if command == "tune" else [])]
        few += [] if command == "tune" else ["--epochs", "2"]
        few += ["--methods", "gcn"] if command == "compare" else []
    files["json"] = "out.json"
    options = [(f"--{name}", str(folder / file)) for name, file in files.items()]
    words = [f"{a}={b}" for a, b in options] if joined else [w for pair in options for w in pair]
    run(monkeypatch, command, *words, *few)
    written = [file for file in folder.rglob("*") if file.suffix in (".html", ".json", ".csv")]
    assert len(written) > len(files) - 1
    for file in written:
        text = file.read_text(encoding="utf-8")
        assert str(folder) not in text, file.name
        assert "secret" not in text, file.name
    pages = [file.read_text(encoding="utf-8") for file in written if file.suffix == ".html"]
    shown = "project/graph.csv" if inside else "graph.csv"
    for page in pages:
        assert f"--graph={shown}" in page if joined else f"--graph {shown}" in page


def test_a_command_shows_what_can_be_typed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from rawlsgcn.cli.outputs import typed_command

    monkeypatch.chdir(tmp_path)
    for typed, shown in (
        (f"--out={tmp_path}/pages/a.html", "--out=pages/a.html"),
        ("--out=/elsewhere/a b.html", "--out=a b.html"),
        ("--out=../beside/a.html", "--out=../beside/a.html"),
        ("/elsewhere/graph.csv", "graph.csv"),
        ("--storage=sqlite:////elsewhere/studies.db", "--storage=sqlite:///studies.db"),
        ("sqlite:////elsewhere/studies.db", "sqlite:///studies.db"),
        ("--storage=postgresql://me:secret@host/db", "--storage=postgresql://me:…@host/db"),
        ("lr=0.1", "lr=0.1"),
    ):
        monkeypatch.setattr("sys.argv", ["rawlsgcn", "train", typed])
        assert shlex.split(typed_command()) == ["rawlsgcn", "train", shown]
