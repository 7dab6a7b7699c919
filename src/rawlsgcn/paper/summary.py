"""What the terminal shows at the end: the tables with their verdicts, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table as Shown
from rich.text import Text

from .page import summary
from .tables import Table, tables

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {
    "reproduced": "",
    "better": "green",
    "differs": "yellow",
    "holds": "green",
    "fails": "red",
    "unclear": "yellow",
}
# What fits into a terminal; the page and the files have every column.
_LEFT_OUT = ("calibrated bias", "low-degree accuracy", "high degree accuracy")


def printed_summary(
    results: Mapping[str, Any],
    failed: Sequence[str],
    left: Sequence[str],
    out: Path,
    console: Console,
) -> None:
    """Print every table, what came out in sentences, and what failed or is left."""
    for table in tables(results):
        if table.key != "claims":
            console.print(_shown(table))
    for sentence in summary(results):
        console.print(sentence, markup=False, highlight=False)
    reasons = {cell["name"]: cell["reason"] for cell in results["cells"]}
    for name in failed:
        console.print(f"Failed: {name}: {reasons[name]}", style="red", markup=False)
    if left:
        console.print(
            f"Left: {len(left)} cells, the next is {left[0]}; go on with --resume.",
            style="yellow",
            markup=False,
            highlight=False,
        )
    console.print(f"Page: {out / 'index.html'}   Tables: {out / 'tables.md'}", markup=False)


def _shown(table: Table) -> Shown:
    places = [
        place
        for place, name in enumerate(table.head)
        if name not in _LEFT_OUT or table.key == "fair"
    ]
    shown = Shown(title=table.title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for place in places:
        shown.add_column(table.head[place], overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(row[place], style=_STYLES.get(row[place], "")) for place in places))
    return shown
