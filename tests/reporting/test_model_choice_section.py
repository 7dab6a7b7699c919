"""The pool of ``auto`` on the terminal, on the page and in notebooks."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import rawlsgcn as rg
from rawlsgcn.experiments.auditing.audit_result import Audit
from rawlsgcn.experiments.model_search.result import AutoResult
from rawlsgcn.reporting.audit_verdict import verdict
from rawlsgcn.reporting.comparison_words import gains
from rawlsgcn.reporting.formatting import short_count
from rawlsgcn.reporting.model_choice_section import leaderboard_figure
from rawlsgcn.reporting.next_steps import next_steps
from rawlsgcn.reporting.notebook import results_html
from rawlsgcn.reporting.page import render
from rawlsgcn.reporting.tables import leaderboard_table


@pytest.fixture(scope="module")
def audit(auto: AutoResult) -> Audit:
    return auto.audit(resamples=200)


def shown(auto: AutoResult, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(leaderboard_table(auto))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_has_a_line_for_each_member_in_order(auto: AutoResult, width: int) -> None:
    lines = shown(auto, width)
    assert max(map(len, lines)) <= width
    rows = lines[3 : 3 + len(auto.leaderboard)]
    for line, member in zip(rows, auto.leaderboard["member"], strict=True):
        assert member in line
        assert line.startswith("→") == (member in auto.chosen)
    assert ("seconds" in lines[1]) == (width == 120)


@pytest.mark.parametrize(
    ("count", "text"),
    [(950, "950"), (1000, "1 k"), (233_124, "233 k"), (999_600, "1.0 M"), (14_250_000, "14.2 M")],
)
def test_counts_are_short(count: int, text: str) -> None:
    assert short_count(count) == text


def test_the_page_shows_how_it_was_chosen(auto: AutoResult, tmp_path: Path) -> None:
    page = rg.report(auto, tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("How it was chosen") == 1
    assert page.count('<span class="tag chosen">') == len(auto.chosen)
    for sentence in auto.explanation:
        assert sentence.split("'")[0].replace(" %", "\u00a0%").strip() in page
    assert "Compared with Tuned GCN, Auto changes accuracy" in page
    assert "&#34;method&#34;" not in page  # the text by which the runs are saved


def test_other_pages_have_no_such_section(make) -> None:
    assert "was chosen</h2>" not in render(make(seeds=1))


def test_without_a_gcn_the_page_is_about_auto_alone(auto: AutoResult) -> None:
    alone = [sentence for sentence in auto.explanation if "Tuned GCN" not in sentence]
    page = render(replace(auto, baseline=None, explanation=alone))
    assert "How it was chosen" in page
    assert "Tuned GCN" not in page
    assert "dashed line is the tuned GCN" not in page


def test_two_of_them_on_a_page_have_their_names(auto: AutoResult) -> None:
    page = render([auto, replace(auto, baseline=None)])
    assert "How Auto #1 was chosen" in page
    assert "How Auto #2 was chosen" in page


def test_the_figure_takes_members_without_a_loss(auto: AutoResult) -> None:
    board = auto.leaderboard.copy()
    board.loc[len(board) - 1, "validation_loss"] = math.inf
    figure = leaderboard_figure(replace(auto, leaderboard=board))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == [str(place + 1) for place in range(len(board) - 1)]


def test_a_loss_of_next_to_nothing_leaves_room_for_the_others(auto: AutoResult) -> None:
    figure = leaderboard_figure(replace(auto, validation_loss=1e-9))
    assert figure.axes[0].get_xlim()[0] > 1e-4
    assert "less than 0.001 is drawn at 0.001" in figure.axes[0].get_xlabel()
    assert "drawn at" not in leaderboard_figure(auto).axes[0].get_xlabel()


def test_the_verdict_compares_with_the_gcn(audit: Audit) -> None:
    said = verdict(audit)
    assert said.comparison is not None
    assert said.comparison.startswith("Auto ")
    assert "Tuned GCN" in said.comparison


def test_who_gains_is_said_with_intervals(audit: Audit) -> None:
    accuracy, bias = gains(audit, "Auto", "Tuned GCN")
    pair = audit.comparisons[0]
    assert f"{pair.accuracy.value:+.1f}".replace("-", "−") in accuracy
    assert "on low-degree nodes" in accuracy
    assert "bias" in bias
    opposite, _ = gains(audit, "Tuned GCN", "Auto")
    assert f"{-pair.accuracy.value:+.1f}".replace("-", "−") in opposite
    assert gains(audit, "Auto", "another") == []


def test_the_answer_hides_no_member(auto: AutoResult) -> None:
    axes = leaderboard_figure(auto).axes[0]
    (answer,) = (line for line in axes.lines if line.get_label() == "the answer")
    assert answer.get_markerfacecolor() == "none"


def test_the_tuned_gcn_is_not_compared_with_itself(auto: AutoResult) -> None:
    same = replace(auto, baseline=replace(auto, title="Tuned GCN", baseline=None))
    (said,) = gains(same.audit(resamples=100), "Auto", "Tuned GCN")
    assert said == "Auto is Tuned GCN itself: both give every node the same probabilities."


def test_no_next_step_tunes_what_auto_chose(audit: Audit) -> None:
    codes = [step.code or "" for step in next_steps(audit)]
    assert not [code for code in codes if "--method auto" in code]
    assert not [code for code in codes if code.startswith("rawlsgcn auto")]


def test_notebooks_show_the_pool(auto: AutoResult) -> None:
    shown = results_html(auto)
    assert shown == auto._repr_html_()
    for member in auto.leaderboard["member"]:
        assert member in shown
    assert "Tuned GCN" in shown
