"""An audit for the terminal: the groups with their intervals, and each model's figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from .audit_words import p_words
from .wording import MINUS, number, percent, printable

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, GroupAudit, ModelAudit
    from ..experiments.audit_result import Audit


_FITS = 16
"""Names up to this length fit the heading of a column of three in a terminal of 80."""


def short_names(names: Sequence[str]) -> list[str]:
    """The names, or where one is long, what tells them apart: without the words, parted by -, _, .
    or spaces, in which all of them begin or end."""
    if len(names) < 2 or max(map(len, names)) <= _FITS:
        return list(names)
    words = [re.split(r"([-_. ]+)", name) for name in names]
    for end in (0, -1):
        while min(map(len, words)) > 1 and len({each[end] for each in words}) == 1:
            for each in words:
                each.pop(end)
    short = ["".join(each).strip("-_. ") for each in words]
    return short if all(short) and len(set(short)) == len(set(names)) else list(names)


def audit_table(audit: Audit) -> Group:
    """Two tables: the groups (with their loss for a single model), and each model as a whole."""
    return Group(_groups(audit), _models(audit))


def _groups(audit: Audit) -> Table:
    small = audit.how.smallest_group
    caption = f"95 % intervals in brackets; groups under {small} nodes are too small to say."
    table = _table(caption)
    table.add_column(printable(audit.column))
    table.add_column("nodes", justify="right")
    several = len(audit.models) > 1
    for heading in _headings(audit):
        name = f"{heading}\n" if several else ""
        table.add_column(f"{name}accuracy (%)", justify="right", overflow="fold")
        if not several:  # four columns of intervals would not fit a terminal
            table.add_column("loss", justify="right")
    for index, group in enumerate(audit.models[0].groups):
        cells = []
        for model in audit.models:
            own = model.groups[index]
            cells += _cells(own, several)
        style = "dim" if group.too_small else None
        table.add_row(printable(group.label), f"{group.nodes:,}", *cells, style=style)
    whole = []
    for model in audit.models:
        whole += _cells(model, several)
    table.add_section()
    table.add_row("all", f"{audit.how.nodes:,}", *whole)
    return table


def _headings(audit: Audit) -> list[str]:
    return short_names([printable(model.name) for model in audit.models])


def _cells(judged: ModelAudit | GroupAudit, several: bool) -> list[str]:
    accuracy = _figure(judged.accuracy, "percent")
    return [accuracy] if several else [accuracy, _figure(judged.loss, "number")]


def _models(audit: Audit) -> Table:
    table = _table(
        "Net: the bias without what chance adds. Shuffled: its mean with "
        f"{printable(audit.column)} shuffled among the nodes."
    )
    table.add_column("")
    for heading in _headings(audit):
        table.add_column(heading, justify="right", overflow="fold")
    for heading, show in _FIGURES.items():
        table.add_row(heading, *(show(model) for model in audit.models))
    return table


def _chance(model: ModelAudit) -> str:
    test = model.permutation
    return f"{number(test.mean)}, {p_words(test.p, test.draws)}" if test.draws else "–"


def _worst(model: ModelAudit) -> str:
    worst = next((each for each in model.worst if each.percent == 10), None)
    return "–" if worst is None else _figure(worst.loss, "number")


_FIGURES: dict[str, Callable[[ModelAudit], str]] = {
    "bias": lambda model: number(model.bias),
    "bias when shuffled": _chance,
    "net of noise": lambda model: number(model.net_variance.value),
    "bias, calibrated": lambda model: (
        "–" if model.scaling is None else number(model.scaling.calibrated_bias)
    ),
    "loss per doubling": lambda model: (
        "–" if model.slope is None else _figure(model.slope.loss, "number")
    ),
    "loss of worst 10 %": _worst,
}


def _figure(estimate: Estimate, one: str) -> str:
    if one == "percent":
        ends = [percent(end) for end in (estimate.low, estimate.high)]
        shown = percent(estimate.value)
    else:
        ends = [_short(end) for end in (estimate.low, estimate.high)]
        shown = _short(estimate.value)
    return shown if math.isnan(estimate.low) else f"{shown} [{ends[0]}, {ends[1]}]"


def _short(value: float) -> str:
    """Two decimals where three would say no more."""
    if 0.01 <= abs(value) < 100:
        return f"{value:.2f}".replace("-", MINUS)
    return number(value)


def _table(caption: str) -> Table:
    text = Text(caption, style="dim")
    return Table(box=box.SIMPLE_HEAD, caption=text, caption_justify="left", header_style="bold")
