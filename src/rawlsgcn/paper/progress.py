"""What a person sees during the work: every cell's state, a bar and the time left, on stderr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..reporting.progress import stderr_is_terminal
from .plan import Cell

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from .run import Report

_SIGNS = {"waiting": "·", "working": "…", "done": "[green]✓[/]", "failed": "[red]✗[/]"}


@contextmanager
def live(cells: Sequence[Cell], points: int) -> Iterator[Report]:
    """Give a function for reports; where nobody watches it shows nothing."""
    if not stderr_is_terminal():
        yield lambda kind, name, number: None
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    states = dict.fromkeys((cell.name for cell in cells), "waiting")
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("trials"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # Half an hour of speed: trials differ, and the time left should not jump with each.
    bar.speed_estimate_period = 1800
    task = bar.add_task("reproducing", total=points)
    console = Console(stderr=True)

    def drawn() -> Group:
        return Group(_table(cells, states), bar)

    with Live(drawn(), console=console, transient=True, refresh_per_second=4) as shown:
        done, claimed, under_way = 0.0, dict[str, float](), dict[str, float]()

        def report(kind: str, name: str, number: float) -> None:
            nonlocal done
            if kind == "epochs":
                under_way[name] = number * claimed.get(name, 0)
                short = name.removeprefix("rawlsgcn/")
                so_far = done + sum(under_way.values())
                bar.update(task, completed=so_far, description=f"{short} {100 * number:3.0f} %")
                return
            if kind == "began":
                states[name], claimed[name] = "working", number
            elif kind == "points":
                done, under_way[name] = done + number, 0
                bar.update(task, completed=done + sum(under_way.values()))
            else:
                states[name] = "failed" if number else "done"
            shown.update(drawn())

        yield report


def _table(cells: Sequence[Cell], states: dict[str, str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    graphs = list(dict.fromkeys(cell.dataset for cell in cells))
    table.add_column("", no_wrap=True)
    for graph in graphs:
        table.add_column(graph, justify="center")
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        label = " ".join(part for part in (cell.protocol, cell.method, cell.variant) if part)
        rows.setdefault(label, {})[cell.dataset] = _SIGNS[states[cell.name]]
    for label, row in rows.items():
        table.add_row(label, *(row.get(graph, "") for graph in graphs))
    return table
