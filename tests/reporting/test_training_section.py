"""The section on training has the numbers, settings, notes and figures of all runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from reporting.page_reader import Reader

from rawlsgcn.evaluation.calibration import CalibrationOutcome
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.reporting.page import render


@pytest.fixture(scope="module")
def reader(three) -> Reader:
    return Reader(render(three, command="rawlsgcn compare --dataset amazon-photo"))


def table(reader: Reader, heading: str) -> list[list[str]]:
    return next(table[1:] for table in reader.tables if table[0][-1] == heading)


def test_means_and_spreads_are_those_of_the_results(reader, three) -> None:
    for row, result in zip(table(reader, "seconds"), three, strict=True):
        assert row == [
            result.title,
            f"{result.accuracy.mean:.1f} ± {result.accuracy.std:.1f}",
            f"{result.low_degree_accuracy.mean:.1f} ± {result.low_degree_accuracy.std:.1f}",
            f"{result.high_degree_accuracy.mean:.1f} ± {result.high_degree_accuracy.std:.1f}",
            f"{result.bias.mean:.3f} ± {result.bias.std:.3f}",
            f"{result.calibrated_bias.mean:.3f} ± {result.calibrated_bias.std:.3f}",
            "48,264",
            "4.0",
        ]


def test_each_run_is_listed_and_the_audited_one_is_marked(reader, three) -> None:
    rows = table(reader, "validation accuracy")
    assert [row[2] for row in rows] == [
        f"{run:.1f}" for result in three for run in result.accuracy.runs
    ]
    marked = [row[1] for row in rows if "audited" in row[0]]
    assert marked == [str(result.seeds[result.best_run]) for result in three]
    text = "".join(reader.words)
    for result in three:
        assert f"seed {result.seeds[result.best_run]} of {result.title}" in text


def test_settings_notes_and_command(reader, three) -> None:
    assert ["normalization", *(each.settings["normalization"] for each in three)] in reader.rows
    assert ["seeds", *3 * ["0, 1, 2"]] in reader.rows
    assert ["peak memory (MB)", *3 * ["512"]] in reader.rows
    text = "".join(reader.words)
    assert text.count("The directed graph was symmetrised.") == 1
    assert "rawlsgcn compare --dataset amazon-photo" in text


def test_its_figures_are_there(reader, make) -> None:
    names = [a["aria-label"] for tag, a in reader.attributes if "aria-label" in a and tag == "div"]
    pictures = {name for name in names if name.startswith("Picture")}
    expected = {"accuracy-bias", "by-degree", "degrees", "curves", "chance", "calibration"}
    assert pictures == {f"Picture: {name}" for name in expected}
    alone = render(make())
    assert "Picture: by-degree" in alone
    assert "Picture: accuracy-bias" not in alone


def test_an_order_that_calibration_changes_is_told(make) -> None:
    sharp = make(base=3.0, by_degree=0.2, seeds=2)
    flat = make("rawlsgcn-graph", "RawlsGCN-Graph", seeds=2)
    flat.run_metrics = [
        evaluate_run(0.05 * run, flat.graph.y, flat.degree, flat.mask, flat.graph.val_mask)
        for run in flat.logits
    ]
    assert flat.bias.mean < sharp.bias.mean
    assert flat.calibrated_bias.mean > sharp.calibrated_bias.mean
    assert (
        "Calibration changes the order: RawlsGCN-Graph has the least bias before it, GCN after it."
        in render([sharp, flat])
    )


def test_a_report_without_training_has_no_such_section(three_models) -> None:
    assert "training" not in Reader(render(three_models)).ids


def test_a_calibrated_bias_that_is_missing_is_a_dash_with_its_reason(make) -> None:
    result = make()
    runs = [*result.run_metrics]
    runs[1] = replace(runs[1], calibrated_bias=math.nan, calibration=CalibrationOutcome.IMPRECISE)
    html = render(make(run_metrics=runs))
    assert table(Reader(html), "seconds")[0][5] == "–"
    assert "GCN has no calibrated bias in 1 of 3 runs: the validation nodes leave" in html
