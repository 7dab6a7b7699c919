"""Which differences survive: the tables are drawn from kept results by one command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rawlsgcn.cli import app
from rawlsgcn.paper.chance import BEGIN, END, markdown
from rawlsgcn.paper.readme import fill

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


@pytest.mark.parametrize(
    ("file", "method", "measure", "lower", "higher"),
    [
        ("test-nodes", "rawlsgcn-graph", "loss", 6, 0),
        ("test-nodes", "rawlsgcn-graph", "calibrated", 6, 0),
        ("test-nodes", "rawlsgcn-grad", "loss", 3, 1),
        ("test-nodes", "rawlsgcn-grad", "calibrated", 2, 0),
        ("all-nodes", "rawlsgcn-graph", "loss", 6, 0),
        ("all-nodes", "rawlsgcn-graph", "calibrated", 7, 0),
        ("all-nodes", "rawlsgcn-grad", "loss", 4, 1),
        ("all-nodes", "rawlsgcn-grad", "calibrated", 1, 0),
    ],
)
def test_the_note_counts_rightly(
    file: str, method: str, measure: str, lower: int, higher: int
) -> None:
    kept = json.loads((KEPT.parent / f"{file}.json").read_text(encoding="utf-8"))
    outcomes = [
        pair[measure]["outcome"]
        for graph in kept["graphs"]
        for pair in graph["against_gcn"]
        if pair["method"] == method
    ]
    assert outcomes.count("holds") == lower
    assert outcomes.count("fails") == higher


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


def test_a_file_without_a_place_is_told_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rawlsgcn.paper.chance.survive", lambda *a, **k: pytest.fail("too late"))
    note = tmp_path / "note.md"
    note.write_text("no markers here", encoding="utf-8")
    done = CliRunner().invoke(app, ["survive", "--datasets", "synthetic", "--out", str(note)])
    assert done.exit_code == 2, done.output
    assert "no place for the tables" in done.output
    note.write_bytes(b"\xff\xfe")
    done = CliRunner().invoke(app, ["survive", "--datasets", "synthetic", "--out", str(note)])
    assert done.exit_code == 2, done.output
    assert "cannot read" in done.output


def test_a_file_that_is_not_there_is_made_and_can_be_filled_again(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    fill(note, "first", BEGIN, END)
    assert note.read_text(encoding="utf-8") == f"{BEGIN}\n\nfirst\n\n{END}\n"
    fill(note, "second", BEGIN, END)
    assert note.read_text(encoding="utf-8") == f"{BEGIN}\n\nsecond\n\n{END}\n"


def test_the_figures_are_written_even_if_the_tables_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was trained for is not lost with the file that went away meanwhile."""
    note, kept = tmp_path / "note.md", tmp_path / "survive.json"
    document = json.loads(KEPT.read_text(encoding="utf-8"))

    def trained(*args: object, **options: object) -> dict[str, object]:
        note.write_text("the markers are gone", encoding="utf-8")
        return document

    monkeypatch.setattr("rawlsgcn.paper.chance.survive", trained)
    said = ["survive", "--datasets", "synthetic", "--out", str(note), "--json", str(kept)]
    assert CliRunner().invoke(app, said).exit_code == 2
    assert json.loads(kept.read_text(encoding="utf-8")) == document
