"""The page is true to the results, whole, and safe to open."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
from reporting.page_reader import Reader

from rawlsgcn import __version__
from rawlsgcn._core.errors import RawlsError
from rawlsgcn.evaluation.calibration import CalibrationOutcome
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.reporting.page import render, report


@pytest.fixture(scope="module")
def page(three):
    return render(three)


def row(reader, first):
    return next(cells for cells in reader.rows if cells and cells[0] == first and len(cells) == 8)


def test_the_table_holds_the_results_numbers(page, three):
    reader = Reader(page)
    for result in three:
        assert row(reader, result.title) == [
            result.title,
            f"{result.accuracy.mean:.1f} ± {result.accuracy.std:.1f}",
            f"{result.low_degree_accuracy.mean:.1f} ± {result.low_degree_accuracy.std:.1f}",
            f"{result.high_degree_accuracy.mean:.1f} ± {result.high_degree_accuracy.std:.1f}",
            f"{result.bias.mean:.3f} ± {result.bias.std:.3f}",
            f"{result.calibrated_bias.mean:.3f} ± {result.calibrated_bias.std:.3f}",
            "48,264",
            "4.0",
        ]


def test_every_degree_and_every_run_is_there(make):
    result = make()
    reader = Reader(render(result))
    degrees = {
        int(cells[0]): cells for cells in reader.rows if len(cells) == 6 and cells[0].isdigit()
    }
    assert sorted(degrees) == list(result.frame.index)
    for degree, row_ in result.frame.iterrows():
        assert degrees[degree][1] == f"{int(row_['count'])}"
        assert degrees[degree][2] == f"{row_['accuracy']:.1f}"
        assert degrees[degree][4] == f"{row_['loss']:.3f}"
    runs = [cells for cells in reader.rows if len(cells) == 8 and cells[1] in ("0", "1", "2")]
    assert [cells[2] for cells in runs] == [f"{run:.1f}" for run in result.accuracy.runs]


def test_settings_notes_version_and_command(make):
    html = render(make(), command="rawlsgcn train --dataset amazon-photo")
    for part in (
        "The directed graph was symmetrised.",
        f"rawlsgcn {__version__}",
        "<code>rawlsgcn train --dataset amazon-photo</code>",
    ):
        assert part in html
    assert ["normalization", "renormalised"] in Reader(html).rows
    assert "The command" not in render(make())


HOSTILE = "<script>alert(1)</script>\"' onload=x & {{ 7*7 }} \ud800 https://evil.example/"


def test_hostile_names_stay_text(make, graph_of, tmp_path):
    plain = Reader(render(make(), command="rawlsgcn"))
    result = make(
        graph=graph_of(HOSTILE), title=HOSTILE, notes=[HOSTILE], settings={HOSTILE: HOSTILE}
    )
    path = report(result, tmp_path / "report.html", command=HOSTILE)
    html = path.read_text(encoding="utf-8")
    reader = Reader(html)
    assert "script" not in reader.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "{{ 7*7 }}" in html
    assert set(reader.tags) == set(plain.tags)
    assert not any(
        key.startswith("on") for _, attributes in reader.attributes for key in attributes
    )


def test_nothing_is_fetched_from_anywhere(page):
    reader = Reader(page)
    assert reader.addresses
    assert all(re.match(r"#|data:image/png;base64,", address) for address in reader.addresses)
    assert "http" not in page
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", page))
    assert not {"script", "link", "iframe"} & set(reader.tags)


def test_ids_are_unique_and_every_reference_finds_its_target(page):
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    wanted = re.findall(r"url\(#([^)]*)\)", page)
    wanted += [address[1:] for address in reader.addresses if address.startswith("#")]
    wanted += [a["aria-labelledby"] for _, a in reader.attributes if "aria-labelledby" in a]
    assert set(wanted) <= set(reader.ids)


def test_semantics_for_those_who_do_not_see_the_page(page, three):
    reader = Reader(page)
    assert reader.tags.count("h1") == 1
    assert reader.tags.count("table") == reader.tags.count("caption")
    for tag, attributes in reader.attributes:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"]) > 20
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        if tag == "html":
            assert attributes["lang"] == "en"
    assert reader.tags.count("svg") == 3
    assert reader.tags.count("details") == len(three) + 1


def test_synthetic_is_spelt_out(make, graph_of):
    html = render(make(graph=graph_of("blocks", synthetic=True)))
    assert "blocks (synthetic)" in html
    assert "synthetic graph, not real data" in html
    assert "synthetic" not in render(make())


def test_a_blurred_model_is_called_unsure_and_a_changed_order_is_told(make):
    sharp = make(base=3.0, by_degree=0.2)
    blurred = make("rawlsgcn-graph", "RawlsGCN-Graph")
    blurred.judgements = [
        evaluate_run(
            0.05 * run, blurred.graph.y, blurred.degree, blurred.mask, blurred.graph.val_mask
        )
        for run in blurred.logits
    ]
    assert blurred.bias.mean < sharp.bias.mean
    assert blurred.calibrated_bias.mean > sharp.calibrated_bias.mean
    html = render([sharp, blurred])
    assert "RawlsGCN-Graph is too unsure of itself" in html
    assert (
        "The order changes: RawlsGCN-Graph has the least bias as it stands, GCN when calibrated"
        in html
    )


def test_a_calibration_that_failed_is_told(make):
    result = make()
    result.judgements = [
        replace(judgement, calibration=CalibrationOutcome.SEPARABLE)
        for judgement in result.judgements
    ]
    assert CalibrationOutcome.SEPARABLE.value in render(result)


def test_the_same_results_give_the_same_page(page, three):
    assert render(three) == page


def test_a_folder_in_the_way_is_one_sentence_and_leaves_nothing(make, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(RawlsError, match="cannot write"):
        report(make(), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_full_disk_is_one_sentence(make):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with pytest.raises(RawlsError, match="cannot write /dev/full/"):
        report(make(), "/dev/full/report.html")


def test_a_disk_that_fills_while_writing_leaves_the_old_page(make, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", full)
    with pytest.raises(RawlsError, match="No space left on device"):
        report(make(), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
