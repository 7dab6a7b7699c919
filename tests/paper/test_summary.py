"""The README's tables are those of the kept results, and the sentences say what the cells do."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.paper.agreement import figure_verdict, with_current_verdicts
from rawlsgcn.paper.output import main_tables, redraw, training_hours
from rawlsgcn.paper.summary import CHOICE_WORDS, sentences
from rawlsgcn.paper.tables import tables
from rawlsgcn.paper.terminal import KEPT_HOURS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    results: dict[str, Any] = json.loads((ROOT / "results/paper/results.json").read_text())
    return results


def test_the_readme_shows_what_the_kept_results_say(kept: dict[str, Any]) -> None:
    text = (ROOT / "docs/results.md").read_text()
    between = text.partition("<!-- reproduce: begin -->")[2].partition("<!-- reproduce: end -->")[0]
    assert between.strip() == main_tables(kept).strip()


def test_no_cell_of_the_kept_results_is_empty(kept: dict[str, Any]) -> None:
    assert kept["cells"]
    for cell in kept["cells"]:
        assert cell["status"] == "finished", cell["name"]


def test_the_counts_follow_from_the_kept_figures(kept: dict[str, Any]) -> None:
    """The README's first four sentences, counted again from the figures and the rule."""
    for choice in ("validation", "test"):
        for own, total in ((True, 28), (False, 182)):
            counts = dict.fromkeys(("reproduced", "better", "differs", "inconclusive"), 0)
            for cell in kept["cells"]:
                mine = cell["method"].startswith("rawlsgcn") and not cell["variant"]
                if cell["protocol"] != "paper" or (own and not mine):
                    continue
                for name in ("accuracy", "bias"):
                    runs = cell["chosen"][choice][name]["runs"]
                    ours = fmean(runs), pstdev(runs)
                    found = figure_verdict(name, ours, (cell["paper"] or {}).get(name), len(runs))
                    if found != "new":
                        counts[found] += 1
            assert sum(counts.values()) == total
            whose = "the two RawlsGCN methods" if own else "all methods"
            said = (
                f"Of {total} printed figures of {whose}, {counts['reproduced']} are reproduced, "
                f"{counts['better']} are better, {counts['differs']} differ and "
                f"{counts['inconclusive']} are inconclusive (the spread is too wide to tell), "
                f"settings {CHOICE_WORDS[choice]}."
            )
            assert f"- {said}\n" in (ROOT / "docs/results.md").read_text()


def test_the_kept_verdicts_are_those_of_the_rule(kept: dict[str, Any]) -> None:
    again = with_current_verdicts(json.loads(json.dumps(kept)))
    assert again == kept


def test_no_kept_bias_that_is_reproduced_is_off_by_a_factor_of_two(kept: dict[str, Any]) -> None:
    found = 0
    for cell in kept["cells"]:
        for chosen in cell["chosen"].values():
            if cell["protocol"] == "paper" and chosen["verdict"]["bias"] == "reproduced":
                found += 1
                assert 0.5 <= chosen["bias"]["mean"] / cell["paper"]["bias"][0] <= 2, cell["name"]
    assert found


def test_redrawing_changes_verdicts_alone(kept: dict[str, Any], tmp_path: Path) -> None:
    """Kept results of an earlier rule are judged again, and everything shown follows."""
    cells = [cell for cell in kept["cells"] if cell["dataset"] == "citeseer"]
    few = json.loads(json.dumps({**kept, "cells": cells, "figures": []}))
    for cell in few["cells"]:
        for chosen in cell["chosen"].values():
            chosen["verdict"] = dict.fromkeys(chosen["verdict"], "reproduced")
    (tmp_path / "results.json").write_text(json.dumps(few))
    redraw(tmp_path)
    again = json.loads((tmp_path / "results.json").read_text())
    assert again == {**few, "cells": cells}
    line = "2190.564 ± 4267.211 | 3.146 ± 2.425 | inconclusive"
    assert line in (tmp_path / "tables.md").read_text()
    assert '<td class="inconclusive">inconclusive</td>' in (tmp_path / "index.html").read_text()
    assert "inconclusive" in (tmp_path / "cells.csv").read_text()


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


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["holds"], "Holds in the only test."),
        (["fails"], "The only test shows the opposite."),
        (["unclear"], "The only test cannot decide it."),
        (["holds", "holds"], "Holds in both tests."),
        (["holds"] * 3, "Holds in all 3 tests."),
    ],
)
def test_few_tests_are_not_called_all(outcomes: list[str], said: str) -> None:
    tests = [{"method": "A", "graph": "G", "outcome": outcome} for outcome in outcomes]
    claim = {"claim": "all is well", "protocol": "fair", "choice": "validation", "tests": tests}
    (sentence,) = sentences({"cells": [], "claims": [claim]})
    assert sentence == f"Claim (fair protocol): all is well. {said}"


def test_seeds_too_few_for_a_permutation_test_are_named() -> None:
    test = {"method": "A", "graph": "G", "outcome": "unclear", "p_seeds": 0.25}
    claim = {"claim": "all", "protocol": "fair", "choice": "validation", "tests": [test]}
    said = sentences({"cells": [], "claims": [claim], "seeds": [0, 1]})
    assert said[1].startswith("With 2 seeds no permutation test over the seeds can give a p under")
    assert len(sentences({"cells": [], "claims": [claim], "seeds": [*range(5)]})) == 1


def test_cells_of_all_protocols_are_counted_once() -> None:
    nothing = {"validation": None, "test": None}
    cell = {"method": "gcn", "variant": "", "chosen": nothing, "trials": [], "dataset": "g"}
    cells = [
        cell | {"protocol": "fair", "status": "not run"},
        cell | {"protocol": "efficiency", "status": "failed"},
        cell | {"protocol": "fair", "status": "part"},
    ]
    assert sentences({"cells": cells, "claims": []}) == ["3 of 3 cells are not finished."]


def test_notes_about_the_papers_graphs_are_not_under_other_tables(kept: dict[str, Any]) -> None:
    of_paper = {table.key: table for table in tables(kept)}
    other = json.loads(json.dumps(kept))
    for cell in other["cells"]:
        cell |= {"dataset": "synthetic", "graph": "synthetic"}
    for key, table in ((table.key, table) for table in tables(other)):
        said = " ".join(table.notes)
        assert "Coauthor" not in said
        assert "1,000" not in said
        assert "Amazon" not in table.title
        assert len(table.notes) <= len(of_paper[key].notes)
    assert "the paper's 1,000 test nodes" in of_paper["effectiveness-test"].notes[0]
    assert len(of_paper["ablation-test"].notes) == 2


def test_the_hours_that_are_said_are_those_of_the_kept_run() -> None:
    kept = ROOT / "results/paper"
    assert round(training_hours(kept), 1) == KEPT_HOURS
    assert f"trained {KEPT_HOURS} hours" in (ROOT / "docs/reproducing.md").read_text()
    with pytest.raises(RawlsError, match="rawlsgcn reproduce"):
        training_hours(ROOT / "docs")
