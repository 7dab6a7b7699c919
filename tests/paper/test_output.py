"""What is shown: every format has the results' numbers, and the page needs nothing else."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.paper.output import check_folder, main_tables, redraw


class Page(HTMLParser):
    """The page's tables, by their key, and every address that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.addresses: list[str] = []
        self.rows: list[list[str]] | None = None
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.addresses += [found[name] or "" for name in ("src", "href") if name in found]
        if tag == "table":
            self.rows = self.tables.setdefault(found.get("data-key") or "", [])
        if tag == "tr" and self.rows is not None:
            self.rows.append([])
        if tag in ("td", "th") and self.rows is not None:
            self.rows[-1].append("")
            self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = self.open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.open and self.rows is not None:
            self.rows[-1][-1] += data


def test_the_page_has_the_results_numbers(finished: Path, results: dict[str, Any]) -> None:
    page = Page((finished / "index.html").read_text(encoding="utf-8"))
    rows = {row[1]: row for row in page.tables["effectiveness-validation"][1:]}
    for cell in results["cells"]:
        if cell["protocol"] != "paper" or cell["variant"]:
            continue
        mark = " †" if cell["searched"] == "first seed" else ""
        chosen = cell["chosen"]["validation"]
        row = rows[cell["title"] + mark]
        for place, name, digits in ((2, "accuracy", 2), (5, "bias", 3), (8, "calibrated_bias", 3)):
            mean, std = chosen[name]["mean"], chosen[name]["std"]
            assert row[place] == f"{mean:.{digits}f} ± {std:.{digits}f}"
            assert mean == pytest.approx(sum(chosen[name]["runs"]) / 2)
    fair = {row[1] for row in page.tables["fair"][1:]}
    assert fair == {"GCN", "RawlsGCN-Graph", "RawlsGCN-Grad", "REDRESS †"}


def test_the_page_needs_nothing_else(finished: Path) -> None:
    text = (finished / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert all(each.startswith(("#", "data:")) for each in page.addresses)
    assert "<script" not in text
    assert not re.search(r"@import|url\((?!#)", text)
    assert "rawlsgcn reproduce &lt;all&gt; &amp; more" in text
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_opens_in_a_browser(finished: Path, tmp_path: Path, width: int) -> None:
    """Headless Chromium: no console message, no request but for the page, nothing too wide."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("Chromium is not installed")
    page = tmp_path / "index.html"
    # A request that fails is an entry too; what is inside the page is none.
    probe = """<script>addEventListener("load", () => {
        const asked = performance.getEntriesByType("resource").length;
        document.title = [document.documentElement.scrollWidth, innerWidth, asked].join("/");
    })</script>"""
    page.write_text((finished / "index.html").read_text().replace("</body>", f"{probe}</body>"))
    words = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--disable-background-networking", "--no-first-run", "--enable-logging=stderr"),
        *(f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", page.as_uri()),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "Every run's settings" in done.stdout
    assert "CONSOLE" not in done.stderr
    title = re.search(r"<title>(\d+)/(\d+)/(\d+)</title>", done.stdout)
    assert title is not None
    assert int(title[1]) <= int(title[2])
    assert int(title[3]) == 0


def test_csv_has_every_figure_in_full(finished: Path, results: dict[str, Any]) -> None:
    with (finished / "cells.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    wanted = {
        (cell["name"], choice, name): cell["chosen"][choice][name]["mean"]
        for cell in results["cells"]
        for choice in ("validation", "test")
        for name in ("accuracy", "bias")
    }
    for line in lines:
        name = "/".join(
            part
            for part in (
                "rawlsgcn",
                *(line[k] for k in ("protocol", "dataset", "method", "variant")),
            )
            if part
        )
        mean = wanted.pop((name, line["chosen_by"], line["figure"]), None)
        assert mean is None or float(line["mean"]) == mean
    assert not wanted


def test_a_page_is_filled_between_its_markers(tmp_path: Path, results: dict[str, Any]) -> None:
    out, page = tmp_path / "out", tmp_path / "README.md"
    out.mkdir()
    cells = [cell for cell in results["cells"] if cell["protocol"] == "fair"]
    (out / "results.json").write_text(json.dumps({**results, "cells": cells}), encoding="utf-8")
    begin, end = "<!-- reproduce: begin -->", "<!-- reproduce: end -->"
    page.write_text(f"before\n{begin}\nold text\n{end}\nafter\n", encoding="utf-8")
    redraw(out, page)
    once = page.read_text(encoding="utf-8")
    assert once.startswith(f"before\n{begin}\n")
    assert once.endswith(f"{end}\nafter\n")
    assert "old text" not in once
    assert "REDRESS" not in once  # GCN and the two methods only
    redraw(out, page)
    assert page.read_text(encoding="utf-8") == once
    page.unlink()
    redraw(out, page)  # a file that does not exist is created
    assert page.read_text(encoding="utf-8") == once.removeprefix("before\n").removesuffix("after\n")
    page.write_text("no place", encoding="utf-8")
    with pytest.raises(RawlsError, match="no place"):
        redraw(out, page)
    page.write_bytes(b"\xff\xfe")
    with pytest.raises(RawlsError, match="cannot be read"):
        redraw(out, page)


def test_the_projects_readme_has_not_drifted() -> None:
    root = Path(__file__).resolve().parents[2]
    kept = root / "results" / "paper" / "results.json"
    if not kept.is_file():
        pytest.skip("the project keeps no results of a full run yet")
    shown = json.loads(kept.read_text(encoding="utf-8"))
    assert main_tables(shown) in (root / "docs/results.md").read_text(encoding="utf-8")


def test_a_folder_with_nothing_but_what_a_kill_left_is_as_good_as_empty(tmp_path: Path) -> None:
    """With the studies elsewhere, results.json is the first file there."""
    (tmp_path / ".rawlsgcn-0123abcd.json").write_text('{"rawlsgcn')
    check_folder(tmp_path)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RawlsError, match="did not write"):
        check_folder(tmp_path)
