"""All can use the page of an audit: by keyboard, without scripts, small, printed, in the dark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.slow  # needs a browser
WIDTH = "document.querySelector('#plot').clientWidth"
AXE = Path(__file__).resolve().parents[2] / ".cache/node_modules/axe-core/axe.min.js"


def test_without_scripts_pictures_and_tables_are_there(visit) -> None:
    page = visit(java_script_enabled=False)
    assert page.locator("#static-curves svg").is_visible()
    assert not page.locator("#explorer").is_visible()
    assert not page.locator("#brush").is_visible()
    assert page.locator("#node-table tbody tr").count() == 20


def test_the_keyboard_does_all_that_the_mouse_does(visit, three_models) -> None:
    page = visit()
    groups = three_models.models[0].groups
    plot = page.locator("#plot")
    plot.focus()
    page.keyboard.press("End")
    assert plot.get_attribute("aria-valuenow") == "5"
    assert groups[-1].label in plot.get_attribute("aria-valuetext")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert plot.get_attribute("aria-valuenow") == "2"
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert [page.input_value("#from"), page.input_value("#to")] == [
        f"{groups[1].low:g}",
        f"{groups[3].high:g}",
    ]
    page.keyboard.press("Escape")
    assert page.input_value("#from") == ""
    page.keyboard.press("Enter")
    assert page.input_value("#from") == f"{groups[3].low:g}"


def test_every_control_is_reached_by_tab_and_shows_it(visit) -> None:
    page = visit()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.name"))
    assert {"figure", "axis", "model", "plot", "from", "to", "clear", "order", "more"} <= reached
    page.locator("#plot").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("name", ["three", "one", "text", "trained", "auto"])
def test_nothing_is_wider_than_the_screen(visit, name) -> None:
    page = visit(name)
    for width in (1280, 390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        # The picture is redrawn for the width that it has.
        sync_api.expect(page.locator("#plot svg")).to_have_attribute(
            "viewBox", re.compile(rf"0 0 {page.evaluate(WIDTH)} ")
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_with_everything_open(visit, tmp_path) -> None:
    page = visit()
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == 2
    page.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("three", "light"),
        ("one", "dark"),
        ("text", "light"),
        ("trained", "light"),
        ("trained", "dark"),
        ("auto", "light"),
        ("auto", "dark"),
    ],
)
def test_axe_finds_nothing_serious(visit, name, scheme) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not in .cache: npm install --prefix .cache axe-core")
    page = visit(name, color_scheme=scheme)
    page.wait_for_selector("#plot svg")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    # Evaluated by the browser's own hand, so that the page's policy need not allow it.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    serious = [
        (each["id"], each["nodes"][0]["html"])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical", "moderate")
    ]
    assert not serious, json.dumps(serious, indent=1)
    assert len(found["passes"]) > 20
