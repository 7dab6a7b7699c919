"""The README's tables are those of the kept results, and the sentences say what the cells do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rawlsgcn.paper.gains import tuning_gains
from rawlsgcn.paper.readme import BEGIN, END, drawn
from rawlsgcn.paper.sentences import sentences

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    results: dict[str, Any] = json.loads((ROOT / "results/paper/results.json").read_text())
    return results


def test_the_readme_shows_what_the_kept_results_say(kept: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text()
    between = text.partition(BEGIN)[2].partition(END)[0]
    assert between.strip() == drawn(kept).strip()


def test_no_cell_of_the_kept_results_is_empty(kept: dict[str, Any]) -> None:
    assert kept["cells"]
    for cell in kept["cells"]:
        assert cell["status"] == "finished", cell["name"]


def test_enough_of_the_two_methods_is_reproduced_or_better(kept: dict[str, Any]) -> None:
    own = [
        cell
        for cell in kept["cells"]
        if cell["protocol"] == "paper"
        and not cell["variant"]
        and cell["method"].startswith("rawlsgcn")
    ]
    verdicts = [each for cell in own for each in cell["chosen"]["test"]["verdict"].values()]
    assert len(verdicts) == 28
    assert sum(each in ("reproduced", "better") for each in verdicts) >= 26


def test_gains_by_tuning_and_by_method_add_up(kept: dict[str, Any]) -> None:
    gains = tuning_gains(kept)
    assert len(gains) == 14
    for gain in gains:
        assert gain.by_tuning + gain.by_method == pytest.approx(gain.own - gain.before)


def test_sentences_name_where_the_opposite_of_a_claim_was_found() -> None:
    def test_of(method: str, outcome: str) -> dict[str, Any]:
        return {"method": method, "graph": "Graph", "outcome": outcome}

    claim = {
        "claim": "all is well",
        "protocol": "fair",
        "choice": "validation",
        "tests": [test_of("A", "holds"), test_of("B", "fails"), test_of("C", "unclear")],
    }
    (said,) = sentences({"cells": [], "claims": [claim]})
    assert said == (
        "Claim (fair protocol): all is well. Holds in 1 of 3 tests; the opposite holds in 1 "
        "(B on Graph); 1 cannot be decided."
    )
