"""The report is true to its audit or results, whole, safe to open, and readable without scripts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from reporting.page_reader import Reader

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.reporting.audit_verdict import verdict
from rawlsgcn.reporting.formatting import number, p_text, percent
from rawlsgcn.reporting.next_steps import next_steps
from rawlsgcn.reporting.page import render, report

HOSTILE = "</script><script>alert(1)</script><!--\"' onload=x & {{ 7*7 }} \u2028 \x1b[31m"


@pytest.fixture(scope="module")
def page(three_models):
    return render(three_models)


def test_the_verdict_stands_at_the_top(page, three_models):
    words = verdict(three_models)
    reader = Reader(page)
    text = "".join(reader.words).replace("\N{NO-BREAK SPACE}", " ")
    assert text.index(words.headline) < text.index("In numbers")
    for sentence in words.sentences:
        assert sentence in text


def test_the_tables_hold_the_audits_numbers(page, three_models):
    reader = Reader(page)
    overview = {row[0]: row for row in reader.table("model")}
    for model in three_models.models:
        assert overview[model.name][1].startswith(percent(model.accuracy.value))
        assert number(model.bias) in overview[model.name]
    groups = [table for table in reader.tables if table[0][0] == "degree"]
    assert len(groups) == 3
    for table, model in zip(groups, three_models.models, strict=True):
        assert len(table) == 1 + len(model.groups)
        for row, group in zip(table[1:], model.groups, strict=True):
            assert row[0].split()[0] == group.label
            assert row[1] == f"{group.nodes:,}"
            assert row[3].startswith(percent(group.accuracy.value))
            assert row[5].startswith(number(group.loss.value))
    pairs = reader.table("first and second")
    assert len(pairs) == len(three_models.comparisons) == 3


def test_without_scripts_the_worst_nodes_are_listed(page, three_models):
    rows = Reader(page).table("node")
    nodes = three_models.nodes
    by_loss = sorted(range(len(nodes.id)), key=lambda place: -nodes.models[0].loss[place])
    assert [row[0] for row in rows] == [str(nodes.id[place]) for place in by_loss[:20]]
    assert [row[4] for row in rows] == [
        number(nodes.models[0].loss[place]) for place in by_loss[:20]
    ]


def test_the_explorers_data_are_the_audits(page, three_models):
    data = json.loads(next(s for s in Reader(page).scripts if s.startswith("{")))
    for said, model in zip(data["models"], three_models.models, strict=True):
        assert [group["loss"][0] for group in said["groups"]] == [
            group.loss.value for group in model.groups
        ]
        for group, at in zip(model.groups, said["groups"], strict=True):
            assert group.low <= at["at"] <= group.high
            assert group.low <= at["logAt"] <= group.high
    assert data["nodes"]["id"] == three_models.nodes.id
    assert data["nodes"]["value"] == three_models.nodes.value


def test_nothing_is_fetched_and_only_its_own_script_may_run(page):
    reader = Reader(page)
    assert all(re.match(r"#|data:,$|data:image/", address) for address in reader.addresses)
    assert not re.search(r"@import|url\((?!#)", page)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    policy = next(
        attributes["content"]
        for tag, attributes in reader.attributes
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    script = reader.scripts[-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_hostile_names_stay_text(make_audit, graph_of, tmp_path):
    graph = graph_of(HOSTILE)
    graph.node_ids = [f"{HOSTILE}{node}" for node in range(graph.num_nodes)]
    column = (HOSTILE, np.array([f"{HOSTILE}{node % 3}" for node in range(graph.num_nodes)]))
    audit = make_audit(
        {HOSTILE: (0.2, 0.9), "plain": (1.0, 0.3)},
        graph=graph,
        column=column,
        notes=(HOSTILE,),
        graph_options={HOSTILE: HOSTILE, "graph": HOSTILE},
        command=HOSTILE,
    )
    html = audit.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    reader = Reader(html)
    assert reader.tags.count("script") == 2
    assert "alert(1)" not in reader.scripts[-1]
    assert "<!--" not in html
    assert "\x1b" not in html
    assert "{{ 7*7 }}" in html
    data = json.loads(reader.scripts[0])
    assert data["nodes"]["id"][0].startswith("</script><script>alert(1)</script>")
    assert not any(
        key.startswith("on") for _, attributes in reader.attributes for key in attributes
    )
    assert "<script" not in audit._repr_html_()


def test_ids_are_unique_and_every_reference_finds_its_target(page):
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    wanted = re.findall(r"url\(#([^)]*)\)", page)
    wanted += [address[1:] for address in reader.addresses if address.startswith("#")]
    for name in ("aria-labelledby", "aria-describedby"):
        wanted += [a[name] for _, a in reader.attributes if name in a]
    assert set(wanted) <= set(reader.ids)
    found = re.findall(r'find\("([\w-]+)"\)', reader.scripts[-1])
    # 'group' is there for columns of text, 'from', 'to' and 'clear' for columns of numbers.
    assert set(found) - {"group"} <= set(reader.ids)


def test_semantics_for_those_who_do_not_see_the_page(page):
    reader = Reader(page)
    assert reader.tags.count("h1") == reader.tags.count("main") == 1
    assert reader.tags.count("table") == reader.tags.count("caption")
    for tag, attributes in reader.attributes:
        if tag == "svg" and attributes.get("aria-hidden") != "true":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"]) > 20
        if tag == "th":
            assert attributes["scope"] in ("row", "col")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 has it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_curves_stand_out_from_the_page(page, scheme):
    """At least 3:1 against the card for every series, in every scheme (WCAG 1.4.11)."""
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    media = {
        "dark": r"@media \(prefers-color-scheme: dark\) \{(.*?)\n\}",
        "print": r"@media print \{(.*?)\n\}",
    }
    plain = style
    for pattern in media.values():
        plain = re.sub(pattern, "", plain, flags=re.DOTALL)
    declared = [plain]
    if scheme in media:
        declared += re.findall(media[scheme], style, re.DOTALL)
    variables = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", " ".join(declared)))
    if scheme == "print":
        variables["card"] = "#ffffff"
    for place in range(6):
        pair = sorted((luminance(variables[f"series-{place}"]), luminance(variables["card"])))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3, (place, variables[f"series-{place}"])


def test_the_same_audit_gives_the_same_page(page, three_models):
    assert render(three_models) == page


@pytest.mark.parametrize(
    "changes",
    [
        {"only_classes": True},
        {"shown": 0},
        {"bins": "degree"},
        {"column": ("rank", np.linspace(1e-6, 1e-3, 600))},
        {"column": ("side", np.linspace(-1.5, 1, 600))},
        {"column": ("same", np.zeros(600, dtype=np.int64))},
        {"column": ("group", np.array(["a", "b", "c"] * 200))},
    ],
    ids=["classes", "no nodes", "every degree", "rank", "negative", "one value", "text"],
)
def test_every_kind_of_audit_has_a_page(make_audit, changes):
    audit = make_audit({"GCN": (0.2, 0.9), "other": (1, 0.5)}, **changes)
    reader = Reader(render(audit))
    assert reader.tags.count("h1") == 1
    assert not re.search(r"\bnan\b|\bNone\b", " ".join(reader.words))
    assert ("nodes" in reader.ids) == (audit.nodes is not None)
    assert ("calibration" in reader.ids) == ("only_classes" not in changes)
    assert next_steps(audit)


def test_a_sample_of_nodes_is_called_one(make_audit):
    text = "".join(Reader(render(make_audit(shown=50))).words)
    assert "A sample of 50 of the 440 evaluated nodes" in text


def test_a_loss_without_bound_has_its_place(make_audit):
    audit = make_audit()
    losses = [
        math.inf if place % 7 == 0 else loss
        for place, loss in enumerate(audit.nodes.models[0].loss)
    ]
    nodes = replace(audit.nodes, models=[replace(audit.nodes.models[0], loss=losses)])
    data = json.loads(Reader(render(replace(audit, nodes=nodes))).scripts[0])
    assert data["nodes"]["models"][0]["loss"][0] is None


def test_ids_too_large_for_a_script_are_kept_as_text(make_audit, graph_of):
    graph = graph_of()
    graph.node_ids = [2**60 + node for node in range(graph.num_nodes)]
    audit = make_audit(graph=graph)
    data = json.loads(Reader(render(audit)).scripts[0])
    assert data["nodes"]["id"] == [str(each) for each in audit.nodes.id]


def test_both_biases_of_a_pair_are_tested_on_the_page(three_models):
    page = render(three_models)
    table = page.partition("<caption>Every pair of models</caption>")[2].partition("</table>")[0]
    pair = three_models.comparisons[0]
    row = next(line for line in table.splitlines() if f"{pair.first} – {pair.second}" in line)
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)]
    for cell, test in zip(cells[-2:], (pair.bias, pair.calibrated_bias), strict=True):
        assert f"{number(test.first)} / {number(test.second)}" in cell
        assert f"({p_text(test.p, test.draws)})" in cell


@pytest.mark.parametrize("kind", ["audit", "result"])
def test_a_folder_in_the_way_is_one_sentence_and_leaves_nothing(kind, three_models, make, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(RawlsError, match="cannot write"):
        report(three_models if kind == "audit" else make(), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_full_disk_is_one_sentence(three_models):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with pytest.raises(RawlsError, match="cannot write /dev/full/"):
        report(three_models, "/dev/full/report.html")


def test_a_disk_that_fills_while_writing_leaves_the_old_page(three_models, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_text", full)
    with pytest.raises(RawlsError, match="No space left on device"):
        report(three_models, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_result_and_its_audit_have_one_page(make, tmp_path):
    result = make()
    audit = result.audit()
    page = audit.to_html(tmp_path / "a.html").read_text(encoding="utf-8")
    seconds = r"took [\d.]+ sec"
    assert re.sub(seconds, "", page) == re.sub(seconds, "", render([result]))
    assert "training" in Reader(page).ids


def test_synthetic_is_spelled_out(make, graph_of):
    html = render(make(graph=graph_of("blocks", synthetic=True)))
    assert "blocks (synthetic)" in html
    assert "synthetic graph, not real data" in html
    assert "synthetic" not in render(make())


def test_hostile_names_of_results_stay_text(make, graph_of, tmp_path):
    plain = Reader(render(make(), command="rawlsgcn"))
    hostile = f"{HOSTILE} \ud800 https://evil.example/"
    result = make(
        graph=graph_of(hostile),
        title=hostile,
        notes=[hostile],
        settings={hostile: hostile, "lr": 0.01},
    )
    path = report(result, tmp_path / "report.html", command=hostile)
    html = path.read_text(encoding="utf-8")
    reader = Reader(html)
    assert set(reader.tags) == set(plain.tags)
    assert "{{ 7*7 }}" in html
    assert "alert(1)" not in reader.scripts[-1]
    assert not any(
        key.startswith("on") for _, attributes in reader.attributes for key in attributes
    )


def test_what_is_neither_result_nor_audit_is_refused(make, tmp_path):
    with pytest.raises(RawlsError, match="not str"):
        report(["gcn"], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_the_sentences_on_many_models_are_folded(make_audit):
    many = {f"m{place}": (0.2 + place / 5, 0.9 - place / 9) for place in range(5)}
    page = render(make_audit(many, shown=0))
    assert page.index("<summary>Each model and pair in words") < page.index("<li>m0 is right")
    assert "Each model and pair in words" not in render(make_audit(shown=0))


@pytest.mark.slow
def test_the_page_needs_no_package_of_the_command_line() -> None:
    """The extra ``report`` is enough: rich and typer are those of the extra ``cli``."""
    code = (
        "import sys; sys.modules |= {'rich': None, 'typer': None}; import rawlsgcn.reporting.page"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
