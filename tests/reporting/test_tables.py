"""The terminal tables carry the results' numbers and fit a hundred columns."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.reporting.formatting import number
from rawlsgcn.reporting.tables import audit_table, datasets_table, results_table, short_names

WIDTH = 100


def lines(table, width=WIDTH):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text().splitlines()


def test_every_figure_of_a_result_stands_in_its_row(three):
    shown = lines(results_table(three))
    assert max(map(len, shown)) <= WIDTH
    for result in three:
        row = next(line for line in shown if line.startswith(result.title))
        for figure in (
            f"{result.accuracy.mean:.1f} ± {result.accuracy.std:.1f}",
            f"{result.low_degree_accuracy.mean:.1f}",
            f"{result.high_degree_accuracy.mean:.1f}",
            f"{result.bias.mean:.3f} ± {result.bias.std:.3f}",
            f"{result.calibrated_bias.mean:.3f}",
            ", ".join(map(str, result.worst_off().index)),
            "48,264",
            "4.0",
        ):
            assert figure in row


@pytest.mark.parametrize("width", [79, 80, 90])
def test_a_narrow_terminal_loses_the_cost_but_no_method_and_no_figure(three, width):
    shown = lines(results_table(three), width)
    assert max(map(len, shown)) <= width
    assert "seconds" not in "".join(shown)
    for result in three:
        row = next(line for line in shown if line.startswith(result.title))
        worst = ", ".join(map(str, result.worst_off().index))
        assert (
            row.removeprefix(result.title).split()
            == (
                f"{result.accuracy.mean:.1f} ± {result.accuracy.std:.1f} "
                f"{result.low_degree_accuracy.mean:.1f} {result.high_degree_accuracy.mean:.1f} "
                f"{result.bias.mean:.3f} {result.calibrated_bias.mean:.3f} {worst}"
            ).split()
        )


def test_the_caption_names_dataset_split_and_seeds(three):
    text = " ".join(" ".join(lines(results_table(three))).split())
    assert "amazon-photo: 600 nodes (60 training, 100 validation, 440 evaluated); 3 seeds" in text


def emphasised(table, column):
    return [bool(cell.style) for cell in table.columns[column].cells]


def test_the_best_is_emphasised_high_for_accuracy_and_low_for_bias(three):
    table = results_table(three)
    for column, best_of, name in ((1, max, "accuracy"), (2, max, "low_degree_accuracy")):
        means = [getattr(result, name).mean for result in three]
        assert emphasised(table, column) == [mean == best_of(means) for mean in means]
    biases = [result.bias.mean for result in three]
    assert emphasised(table, 4) == [bias == min(biases) for bias in biases]


def test_nothing_is_best_alone_or_among_equals(make):
    result = make()
    for results in ([result], [result, result]):
        assert not any(any(emphasised(results_table(results), column)) for column in range(1, 6))


def test_one_method_twice_is_told_apart_by_its_settings(make):
    settings = {"lr": 0.01, "epochs": 200, "normalization": "row"}
    other = make(settings=settings | {"normalization": "column"})
    cells = [
        cell.plain for cell in results_table([make(settings=settings), other]).columns[0].cells
    ]
    assert cells == ["GCN (normalization row)", "GCN (normalization column)"]


def test_markup_and_control_characters_in_names_do_nothing(make, graph_of):
    result = make(graph=graph_of("[red]x[/red]\x1b[2J"), title="[bold]m[/bold]")
    shown = "\n".join(lines(results_table(result)))
    assert "[red]x[/red]" in shown
    assert "[bold]m[/bold]" in shown
    assert "\x1b" not in shown


def test_results_of_different_graphs_or_nodes_are_refused(make, graph_of):
    with pytest.raises(RawlsError, match="amazon-photo and cora-ml cannot be shown together"):
        results_table([make(), make(graph=graph_of("cora-ml"))])
    other = graph_of()
    other.test_mask = other.val_mask
    with pytest.raises(RawlsError, match="same split"):
        results_table([make(), make(graph=other)])
    with pytest.raises(RawlsError, match="at least one"):
        results_table([])


def test_datasets_show_their_statistics_where_they_are_on_disk():
    names = ("nodes", "edges", "features", "classes", "median_degree", "isolated_nodes")
    there = dict(zip(names, (7650, 119081, 745, 8, 22.0, 115), strict=True))
    rows = [
        {"name": "amazon-photo", "title": "Amazon Photo", "on_disk": True, **there},
        {"name": "chameleon", "title": "Chameleon", "on_disk": False},
    ]
    shown = lines(datasets_table(rows))
    photo = next(line for line in shown if "amazon-photo" in line)
    assert photo.split()[3:] == ["yes", "7,650", "119,081", "745", "8", "22", "115"]
    assert next(line for line in shown if "chameleon" in line).split()[2:] == ["no"] + 6 * ["–"]


def test_dataset_names_stay_whole_in_eighty_columns():
    names = ("nodes", "edges", "features", "classes", "median_degree", "isolated_nodes")
    row = dict(zip(names, (34493, 495924, 8415, 5, 10, 0), strict=True))
    row |= {"name": "coauthor-physics", "title": "A rather long title", "on_disk": True}
    shown = lines(datasets_table([row]), 80)
    assert " ".join(shown[-1].split()) == "coauthor-physics yes 34,493 495,924 8,415 5 10 0"


def test_large_counts_are_not_rounded():
    row = dict.fromkeys(
        ("edges", "features", "classes", "median_degree", "isolated_nodes"), 1234567
    )
    row |= {"name": "a", "title": "A", "on_disk": True, "nodes": 12345678}
    assert "12,345,678" in "\n".join(lines(datasets_table([row])))


def test_tables_load_neither_torch_nor_matplotlib():
    code = (
        "import sys, rawlsgcn.reporting.tables, rawlsgcn.reporting.progress;"
        "assert not {'torch', 'matplotlib', 'pandas', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_table_says_where_the_reason_of_a_missing_calibrated_bias_is(make) -> None:
    runs = [replace(run, calibrated_bias=math.nan) for run in make().run_metrics]
    shown = [" ".join(lines(results_table(each))) for each in (make(run_metrics=runs), make())]
    assert "the note on temperature scaling says" in " ".join(shown[0].split())
    assert "temperature scaling" not in shown[1]


FILES = ["predictions-gcn", "predictions-rawlsgcn-graph", "predictions-rawlsgcn-grad"]


def test_models_of_similar_names_are_told_apart_in_80_columns(make_audit) -> None:
    shown = lines(audit_table(make_audit(dict.fromkeys(FILES, (0.2, 0.9)))), 80)
    assert max(map(len, shown)) <= 80
    headings = [line.split() for line in shown if "rawlsgcn-graph" in line]
    assert headings == [["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]] * 2
    assert "…" not in "".join(shown)


def test_a_long_name_is_folded_and_not_cut(make_audit) -> None:
    names = {f"{letter * 40}": (0.2, 0.9) for letter in "xyz"}
    shown = "".join(lines(audit_table(make_audit(names)), 80))
    assert "…" not in shown
    assert shown.count("x") == 80  # forty in each of the two tables


def test_only_words_that_all_share_are_left_out() -> None:
    assert short_names(FILES) == ["gcn", "rawlsgcn-graph", "rawlsgcn-grad"]
    assert short_names(["run 1 of the model", "run 2 of the model"]) == ["1", "2"]
    assert short_names(["gcn", "gat"]) == ["gcn", "gat"]  # short enough as they are
    assert short_names(["a long name of a model", "a long name"]) == ["name of a model", "name"]
    assert short_names(["a long name of a model"]) == ["a long name of a model"]


@given(st.lists(st.text("ab-_ ", max_size=40), max_size=4, unique=True))
def test_different_names_stay_different(names: list[str]) -> None:
    short = short_names(names)
    assert len(set(short)) == len(names)


def test_an_audit_shows_the_metrics_of_each_model(three_models) -> None:
    shown = lines(audit_table(three_models), 120)
    (row,) = (line for line in shown if "loss per doubling" in line)
    assert row.count("[") == 3
    (row,) = (line for line in shown if "bias, calibrated" in line)
    for model in three_models.models:
        assert number(model.scaling.calibrated_bias) in row
