"""Which differences are significant: kept results, the page that shows them, and the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rawlsgcn.cli import app
from rawlsgcn.paper.output import redraw, significance_section

ROOT = Path(__file__).resolve().parents[2]
NOTE = ROOT / "docs" / "which-differences-are-significant.md"
KEPT = ROOT / "results" / "significance" / "test-nodes" / "significance.json"


def test_the_note_shows_the_kept_results() -> None:
    text = NOTE.read_text(encoding="utf-8")
    shown = text.partition("<!-- significance: begin -->")[2].partition("<!-- significance: end")[0]
    assert shown.strip() == significance_section(json.loads(KEPT.read_text(encoding="utf-8")))


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
    kept = json.loads((KEPT.parents[1] / file / KEPT.name).read_text(encoding="utf-8"))
    outcomes = [
        pair[measure]["outcome"]
        for graph in kept["graphs"]
        for pair in graph["against_gcn"]
        if pair["method"] == method
    ]
    assert outcomes.count("holds") == lower
    assert outcomes.count("fails") == higher


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *(str(word) for word in words)])


@pytest.mark.slow
def test_the_command_trains_tests_and_keeps(tmp_path: Path) -> None:
    out, note = tmp_path / "out", tmp_path / "note.md"
    words = ("significance", "--datasets", "synthetic", "--seeds", 2, "--out", out)
    done = call(*words, "--json", tmp_path / "all.json")
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {"significance.json", "significance.md"}
    document = json.loads((out / "significance.json").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "all.json").read_text()) == {"significance": document}
    (graph,) = document["graphs"]
    gcn = graph["methods"][0]
    # Noise and what is left of it add up to the bias, in the mean over seeds.
    assert np.mean(gcn["net"]) <= np.mean(gcn["bias"])
    pair = graph["against_gcn"][0]["loss"]
    ratio = graph["methods"][1]["bias"][0] * graph["methods"][1]["bias"][1]
    ratio /= gcn["bias"][0] * gcn["bias"][1]
    assert np.exp(2 * pair["difference"]) == pytest.approx(ratio, rel=1e-2)

    again = call(*words)
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "rawlsgcn.paper.reproduction.bias_significance", lambda *a, **k: pytest.fail("again")
        )
        assert call(*words, "--resume").exit_code == 0
        other = call(*words, "--resume", "--evaluate", "all")
        assert other.exit_code == 2
        assert "same settings" in other.stderr
    begin, end = "<!-- significance: begin -->", "<!-- significance: end -->"
    note.write_text(f"before\n{begin}\nold\n{end}\nafter\n", encoding="utf-8")
    assert call("--out", out, "--readme", note).exit_code == 0
    assert note.read_text(encoding="utf-8") == (
        f"before\n{begin}\n\n{significance_section(document)}\n\n{end}\nafter\n"
    )


def test_without_time_the_tests_are_named_as_left(tmp_path: Path) -> None:
    done = call("significance", "--datasets", "synthetic", "--out", tmp_path / "out", "--budget", 0)
    assert done.exit_code == 0, done.output
    assert "significance" in done.stdout
    assert "--resume" in done.stdout


def test_kept_results_are_drawn_again_as_they_are(tmp_path: Path) -> None:
    out = shutil.copytree(KEPT.parent, tmp_path / "out")
    redraw(out)
    for path in KEPT.parent.iterdir():
        assert (out / path.name).read_bytes() == path.read_bytes(), path.name
