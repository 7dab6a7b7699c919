"""What the terminal shows: each cell's state while it is trained, and the tables at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box, progress
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from .._core.text import plural
from ..reporting.progress import stderr_is_terminal
from .output import SIGNIFICANCE
from .plan import Cell, Plan
from .significance import significance_tables
from .summary import sentences
from .table_formats import Table
from .tables import tables
from .workers import EventCallback

_STATES = {"waiting": "·", "working": "…", "done": "[green]✓[/]", "failed": "[red]✗[/]"}
# The sign replaces the word where a terminal is too narrow for words.
_VERDICTS = {
    "reproduced": ("=", ""),
    "better": ("+", "green"),
    "differs": ("≠", "yellow"),
    "inconclusive": ("?", "yellow"),
    "diverged": ("×", "red"),
    "new": ("·", ""),
}
_WIDE = 130
KEPT_HOURS, KEPT_ON = 1.3, "an NVIDIA H200"
"""What ``training_hours`` computes from results/paper, and the machine of that run."""


@contextmanager
def live_progress(cells: Sequence[Cell], points: int) -> Iterator[EventCallback]:
    """Show every cell's state, a bar and the time left; nothing where stderr is no terminal."""
    if not stderr_is_terminal():
        yield lambda kind, name, number: None
        return
    states = dict.fromkeys((cell.name for cell in cells), "waiting")
    bar = progress.Progress(
        *("{task.description}", progress.BarColumn()),
        *("{task.completed:.0f}/{task.total:.0f}", "trials"),
        *(progress.TimeElapsedColumn(), progress.TimeRemainingColumn()),
    )
    # The speed over half an hour: trials differ, and the time left should not jump with each.
    bar.speed_estimate_period = 1800
    task = bar.add_task("reproducing", total=points)

    done, claimed, under_way = 0.0, dict[str, float](), dict[str, float]()

    def report(kind: str, name: str, number: float) -> None:
        nonlocal done
        if kind == "began":
            states[name], claimed[name] = "working", number
        elif kind == "epochs":
            under_way[name] = number * claimed.get(name, 0)
            short = name.removeprefix("rawlsgcn/")
            bar.update(task, description=f"{short} {100 * number:3.0f} %")
        elif kind == "points":
            done, under_way[name] = done + number, 0
        else:
            states[name] = "failed" if number else "done"
        bar.update(task, completed=done + sum(under_way.values()))

    console = Console(stderr=True)
    with Live(
        get_renderable=lambda: Group(_state_table(cells, states), bar),
        console=console,
        transient=True,
        refresh_per_second=4,
    ):
        yield report


def _state_table(cells: Sequence[Cell], states: Mapping[str, str]) -> RichTable:
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        label = " ".join(word for word in (cell.protocol, cell.method, cell.variant) if word)
        rows.setdefault(label, {})[cell.dataset] = _STATES[states[cell.name]]
    table = RichTable(Column("", no_wrap=True), box=box.SIMPLE_HEAD, pad_edge=False)
    graphs = list(dict.fromkeys(cell.dataset for cell in cells))
    for graph in graphs:
        table.add_column(graph, justify="center")
    for label, row in rows.items():
        table.add_row(label, *(row.get(graph, "") for graph in graphs))
    return table


def work_ahead(plan: Plan) -> str:
    """Say how much a plan trains, and how long all of the paper took.

    Args:
        plan: What is to be run.

    Returns:
        A sentence for the beginning; empty if nothing is trained.
    """
    cells = plan.cells()
    if not cells:
        return ""
    trials = sum(len(cell.combinations()) for cell in cells)
    return (
        f"{plural(len(cells), 'cell')} (a method on a graph) with {plural(trials, 'trial')} "
        f"(settings, each with {plural(len(plan.seeds), 'seed')}). The kept run of all parts took "
        f"{KEPT_HOURS} hours of training on {KEPT_ON}; a CPU takes longer. Ctrl-C or --budget "
        "SECONDS stops it, --resume goes on."
    )


def print_summary(
    results: Mapping[str, Any],
    failed: Sequence[str],
    left: Sequence[str],
    out: Path,
    console: Console,
) -> None:
    """Print the tables, the findings in sentences, and what failed or is left.

    Args:
        results: What ``reproduce`` returned.
        failed: The names of the cells that failed.
        left: The names of the cells that are not finished.
        out: The folder of the results.
        console: Where to print.
    """
    files = []
    if "cells" in results:
        wide = console.width >= _WIDE
        for table in tables(results):
            if table.key != "claims":
                console.print(_rich_table(table, wide))
        if not wide:
            words = ", ".join(f"{sign} {word}" for word, (sign, _) in _VERDICTS.items())
            said = f"Verdicts: {words} (no number in the paper)."
            console.print(said, style="dim", highlight=False)
        for sentence in sentences(results):
            console.print(sentence, markup=False, highlight=False)
        files += [f"Page: {out / 'index.html'}", f"Tables: {out / 'tables.md'}"]
    if results.get("significance"):
        for table in significance_tables(results["significance"]):
            console.print(_rich_table(table, wide=True))
        files.append(f"Significance: {out / SIGNIFICANCE}")
    reasons = {cell["name"]: cell["reason"] for cell in results.get("cells", ())}
    for name in failed:
        console.print(f"Failed: {name}: {reasons[name]}", style="red", markup=False)
    if left:
        said = f"Next is {left[0]}: continue with --resume."
        console.print(said, style="yellow", markup=False, highlight=False)
    console.print("   ".join(files), markup=False)


def _rich_table(table: Table, wide: bool) -> RichTable:
    """Convert a table; a narrow one has signs for verdicts and nothing after the last of them."""
    last = max(table.verdicts, default=len(table.head) - 1)
    columns = [column for column in range(len(table.head)) if wide or column <= last]
    if not wide and table.verdicts and table.head[:2] == ("graph", "method"):
        columns.remove(0)  # the graph becomes a line of its own
    style: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    shown = RichTable(title=table.title, title_justify="left", **style)
    for column in columns:
        name = table.head[column] if wide or column not in table.verdicts else ""
        shown.add_column(name, overflow="fold")
    before = None
    for row in table.rows:
        if 0 not in columns and row[0] != before:
            before = row[0]
            shown.add_row(Text(before, style="bold"))
        cells = []
        for column in columns:
            verdict = _VERDICTS.get(row[column]) if column in table.verdicts else None
            sign, color = verdict or (row[column], "")
            cells.append(Text(row[column] if wide else sign, style=color))
        shown.add_row(*cells)
    return shown
