"""What the terminal shows at the end: the tables with their verdicts, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table as Shown
from rich.text import Text

from .sentences import sentences
from .tables import Table, tables

if TYPE_CHECKING:
    from rich.console import Console

# The sign stands for the word where a terminal is too narrow for words.
_VERDICTS = {
    "reproduced": ("=", ""),
    "better": ("+", "green"),
    "differs": ("≠", "yellow"),
    "inconclusive": ("?", "yellow"),
    "diverged": ("×", "red"),
    "new": ("·", ""),
}
_WIDE = 130


def printed_summary(
    results: Mapping[str, Any],
    failed: Sequence[str],
    left: Sequence[str],
    out: Path,
    console: Console,
) -> None:
    """Print every table, what came out in sentences, and what failed or is left."""
    wide = console.width >= _WIDE
    for table in tables(results):
        if table.key != "claims":
            console.print(_shown(table, wide))
    if not wide:
        words = ", ".join(f"{sign} {word}" for word, (sign, _) in _VERDICTS.items())
        console.print(f"Verdicts: {words} (no number in the paper).", style="dim", highlight=False)
    for sentence in sentences(results):
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


def _shown(table: Table, wide: bool) -> Shown:
    """A table for the terminal; a narrow one has signs for verdicts and no further figures."""
    last = max(table.verdicts, default=len(table.head) - 1)
    places = [place for place in range(len(table.head)) if wide or place <= last]
    graphs = table.head[0] == "graph" and not wide and bool(table.verdicts)
    if graphs and table.head[1] == "method":
        places.remove(0)
    shown = Shown(
        title=table.title,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title_justify="left",
    )
    for place in places:
        name = table.head[place] if wide or place not in table.verdicts else ""
        shown.add_column(name, overflow="fold")
    before = None
    for row in table.rows:
        if 0 not in places and row[0] != before:
            before = row[0]
            shown.add_row(Text(before, style="bold"))
        shown.add_row(*(_text(row[place], place in table.verdicts, wide) for place in places))
    return shown


def _text(cell: str, verdict: bool, wide: bool) -> Text:
    if not verdict or cell not in _VERDICTS:
        return Text(cell)
    sign, style = _VERDICTS[cell]
    return Text(cell if wide else sign, style=style)
