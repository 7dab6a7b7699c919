"""The explorer of an audit's page in headless Chromium: it does what it says."""

from __future__ import annotations

from typing import Any

import pytest

from rawlsgcn.evaluation.audit.grouping import MOST_TEXTS
from rawlsgcn.experiments.auditing.audit_result import Audit
from rawlsgcn.reporting.formatting import number, percent

pytestmark = pytest.mark.slow  # needs a browser


def rows(page: Any, table: str) -> list[list[str]]:
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    read: list[list[str]] = page.locator(f"{table} tbody tr").evaluate_all(cells)
    return read


def paths(page: Any) -> str:
    return str(page.locator("#plot svg").inner_html())


def at_group(page: Any, place: int) -> tuple[float, float]:
    """A point on the page over the middle of the group's mark, taken from its drawn place."""
    mark = page.locator("#plot .mark").nth(place)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_script_takes_the_place_of_the_still_picture(visit) -> None:
    page = visit()
    assert page.locator("#explorer").is_visible()
    assert not page.locator("#static-curves").is_visible()
    assert page.locator("#plot svg .mark").count() == 3 * 5


def test_switching_redraws(visit) -> None:
    page = visit()
    seen = {paths(page)}
    for control in ("figure", "axis"):
        for value in {"figure": ("accuracy", "loss"), "axis": ("linear", "log")}[control]:
            page.check(f"[name={control}][value={value}]")
            seen.add(paths(page))
    assert len(seen) == 3  # back at the start twice
    page.check("[name=figure][value=accuracy]")
    assert "accuracy (%)" in page.locator("#plot svg").text_content()


def test_picking_models_hides_them(visit, three_models) -> None:
    page = visit()
    page.uncheck("[name=model][value='1']")
    assert page.locator("#plot svg .mark").count() == 2 * 5
    assert [row[0] for row in rows(page, "#readout")] == ["GCN", "RawlsGCN-Grad"]
    assert "RawlsGCN-Graph" not in page.locator("#node-status").inner_text()
    page.uncheck("[name=model][value='0']")
    page.uncheck("[name=model][value='2']")
    assert page.locator("#plot svg .mark").count() == 0
    page.check("[name=model][value='1']")
    assert [row[0] for row in rows(page, "#readout")] == ["RawlsGCN-Graph"]


def test_hovering_tells_the_groups_numbers(visit, three_models) -> None:
    page = visit()
    for place in (3, 1, 4):
        page.mouse.move(*at_group(page, place))
        group = three_models.models[0].groups[place]
        assert (
            f"degree {group.label}: {group.nodes} nodes"
            in page.locator("#readout-name").inner_text()
        )
        for row, model in zip(rows(page, "#readout"), three_models.models, strict=True):
            own = model.groups[place]
            assert row[0] == model.name
            for cell, each, show in ((1, own.loss, number), (2, own.accuracy, percent)):
                told = f"{show(each.value)} ({show(each.low)} to {show(each.high)})"
                assert " ".join(row[cell].split()) == told


def expected(audit: Audit, low: float, high: float) -> list[int]:
    return [place for place, value in enumerate(audit.nodes.value) if low <= value <= high]


def test_brushing_with_the_mouse_lists_those_nodes(visit, three_models) -> None:
    page = visit()
    (left, y), (right, _) = at_group(page, 1), at_group(page, 3)
    page.mouse.move(left, y)
    page.mouse.down()
    page.mouse.move((left + right) / 2, y, steps=4)
    page.mouse.move(right, y, steps=4)
    page.mouse.up()
    low, high = (float(page.input_value(f"#{end}")) for end in ("from", "to"))
    groups = three_models.models[0].groups
    assert groups[1].low <= low <= groups[1].high
    assert groups[3].low <= high <= groups[3].high
    held = expected(three_models, low, high)
    assert (
        page.locator("#node-status")
        .inner_text()
        .startswith(f"{len(held)} nodes with degree {low:.0f} to {high:.0f};")
    )
    assert page.locator("#plot .held").count() == 1
    page.click("#more")
    listed = rows(page, "#node-table")
    assert {row[0] for row in listed} <= {str(three_models.nodes.id[place]) for place in held}
    assert all(low <= int(row[1].replace(",", "")) <= high for row in listed)
    losses = [float(row[4]) for row in listed]
    assert losses == sorted(losses, reverse=True)


def test_a_click_holds_a_group_and_the_button_lets_go(visit, three_models) -> None:
    page = visit()
    page.mouse.click(*at_group(page, 0))
    group = three_models.models[0].groups[0]
    assert page.input_value("#to") == f"{group.high:g}"
    assert page.locator("#node-status").inner_text().startswith(f"{group.nodes} nodes")
    right = 100 * group.right / group.nodes
    assert (
        f"GCN: mean loss {number(group.loss.value)}, {percent(right)} % right"
        in page.locator("#node-status").inner_text()
    )
    page.click("#clear")
    assert page.input_value("#from") == ""
    assert page.locator("#node-status").inner_text().startswith("440 nodes;")


def test_the_two_numbers_brush_and_the_order_is_kept(visit, three_models) -> None:
    page = visit()
    page.fill("#from", "3")
    page.fill("#to", "5")
    page.keyboard.press("Tab")
    held = expected(three_models, 3, 5)
    assert page.locator("#node-status").inner_text().startswith(f"{len(held)} nodes")
    page.select_option("#order", "high")
    degrees = [int(row[1]) for row in rows(page, "#node-table")]
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[0] == 5
    page.fill("#from", "5000")
    page.fill("#to", "6000")
    page.keyboard.press("Tab")
    assert page.locator("#node-status").inner_text().startswith("0 nodes")
    assert rows(page, "#node-table") == []


def test_the_pooled_texts_are_picked_together(visit) -> None:
    """The last group has the nodes of all texts that do not stand alone."""
    page = visit("rare")
    options = page.locator("#group option").all_inner_texts()
    assert len(options) == 1 + MOST_TEXTS + 1
    page.select_option("#group", str(MOST_TEXTS))
    shown = {row[2] for row in rows(page, "#node-table")}
    assert shown
    assert not shown & set(options)
    page.select_option("#group", "0")
    assert {row[2] for row in rows(page, "#node-table")} == {options[1]}


def test_text_groups_are_picked_by_name(visit) -> None:
    page = visit("text")
    assert not page.locator("[name=axis]").count()
    page.select_option("#group", label="b</script>")
    assert page.locator("#node-status").inner_text().split(";")[0].endswith("with group b</script>")
    assert {row[2] for row in rows(page, "#node-table")} == {"b</script>"}
    page.mouse.click(*at_group(page, 0))
    assert {row[2] for row in rows(page, "#node-table")} == {"a"}


def test_a_long_interval_is_cut_at_an_arrow(visit) -> None:
    page = visit("long")
    assert page.locator("#plot svg .cut").count() == 1
    page.check("[name=figure][value=accuracy]")
    assert not page.locator("#plot svg .cut").count()


def test_one_node_is_no_plural(visit) -> None:
    page = visit("one")
    page.locator("#plot").press("End")
    assert ": 1 node, " in page.locator("#readout-name").inner_text()


def test_without_single_nodes_the_picture_still_answers(visit) -> None:
    page = visit("bare")
    page.mouse.click(*at_group(page, 1))
    page.keyboard.press("Escape")
    assert page.locator("#readout tbody tr").count() == 1
    assert not page.locator("#nodes").count()


def test_a_sample_is_called_one(visit) -> None:
    page = visit("sample")
    assert "of a sample of 50 of the 440 evaluated" in page.locator("#node-status").inner_text()
