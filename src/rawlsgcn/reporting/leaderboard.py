"""The pool of ``auto`` as a leaderboard: for the terminal, and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import number, percent
from .tables import BEST, FittingTable, plain_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..experiments.model_search import AutoResult

_LEGEND = (
    "→: a part of the answer. Everything is chosen by the loss, which is the cross entropy on the "
    "validation nodes after temperature scaling. The accuracies and the bias are those of the "
    "evaluated nodes; low degrees: the quarter with the lowest. Parameters: the numbers to keep."
)


def leaderboard_table(result: AutoResult) -> Table:
    """Show the pool, the lowest validation loss first; chosen members are marked.

    On fewer columns than it needs, the validation accuracy and the seconds are omitted.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        A rich table with one row for each member.
    """
    table = _table(result, whole=True)
    table.narrower = _table(result, whole=False)
    return table


def short_count(count: int) -> str:
    """``950``, ``233 k`` or ``1.4 M``."""
    if count < 1000:
        return f"{count}"
    return f"{count / 1e3:,.0f} k" if count < 999_500 else f"{count / 1e6:,.1f} M"


#: Heading, column of the leaderboard, how it is shown, and whether it is omitted in few columns.
COLUMNS: tuple[tuple[str, str, Callable[[float], str], bool], ...] = (
    ("validation\nloss", "validation_loss", number, False),
    ("validation\naccuracy", "validation_accuracy", percent, True),
    ("accuracy\n(%)", "accuracy", percent, False),
    ("of low\ndegrees", "low_degree_accuracy", percent, False),
    ("calibrated\nbias", "calibrated_bias", number, False),
    ("para-\nmeters", "parameters", lambda count: short_count(int(count)), False),
    ("\nseconds", "seconds", lambda seconds: f"{seconds:,.1f}", True),
)


def _table(result: AutoResult, whole: bool) -> FittingTable:
    table = plain_table(Text(f"\n{_LEGEND}", style="dim"))
    table.add_column("")
    table.add_column("\nmember", overflow="fold")
    columns = [column for column in COLUMNS if whole or not column[3]]
    for heading, *_ in columns:
        if not whole and heading == "validation\nloss":
            heading = "\nloss"
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.leaderboard.to_dict("records"):
        table.add_row(
            "→" if row["weight"] else "",
            Text(printable(row["member"])),
            *(show(row[name]) for _, name, show, _ in columns),
            style=BEST if row["weight"] else "",
        )
    return table
