"""Which differences survive: the tables are drawn from kept results by one command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rawlsgcn.cli import app
from rawlsgcn.paper.survive import BEGIN, END, markdown

ROOT = Path(__file__).resolve().parents[2]
NOTE = ROOT / "docs" / "which-differences-survive.md"
KEPT = ROOT / "results" / "survive" / "test-nodes.json"


def test_the_note_shows_the_kept_results() -> None:
    shown = NOTE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == markdown(json.loads(KEPT.read_text(encoding="utf-8")))


def test_the_kept_results_are_those_of_seven_graphs_and_three_methods() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert len(kept["graphs"]) == 7
    for graph in kept["graphs"]:
        assert [each["method"] for each in graph["methods"]] == [
            *("gcn", "rawlsgcn-graph", "rawlsgcn-grad")
        ]
        for each in graph["methods"]:
            assert len(each["p"]) == len(each["bias"]) == kept["seeds"] == 5


def test_the_command_trains_tests_and_draws(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    said = ["survive", "--datasets", "synthetic", "--seeds", "2", "--draws", "100"]
    said += ["--out", str(note), "--json", str(tmp_path / "survive.json")]
    done = CliRunner().invoke(app, said)
    assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "survive.json").read_text(encoding="utf-8"))
    assert note.read_text(encoding="utf-8") == (
        f"before\n{BEGIN}\n\n{markdown(document)}\n\n{END}\nafter\n"
    )
    (graph,) = document["graphs"]
    gcn = graph["methods"][0]
    # Noise and what is left of it add up to the bias, in the mean over seeds.
    assert np.mean(gcn["net"]) <= np.mean(gcn["bias"])
    pair = graph["against_gcn"][0]["loss"]
    ratio = graph["methods"][1]["bias"][0] * graph["methods"][1]["bias"][1]
    ratio /= gcn["bias"][0] * gcn["bias"][1]
    assert np.exp(2 * pair["difference"]) == pytest.approx(ratio, rel=1e-2)
