"""Tables of an audit for the terminal: its groups, and the metrics of each model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import MINUS, number, percent
from .text_tables import AUDITED

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, GroupAudit, ModelAudit
    from ..experiments.auditing.audit_result import Audit

_SHORT_NAME = 16
"""Names up to this length fit the heading of a column of three in a terminal of 80."""


def audit_table(audit: Audit) -> Group:
    """Show an audit's groups (with their loss for a single model) and the metrics of each model.

    Args:
        audit: The audit.

    Returns:
        Two rich tables.
    """
    return Group(_groups_table(audit), _models_table(audit))


def short_names(names: Sequence[str]) -> list[str]:
    """Shorten long names to the words in which they differ.

    Words at the beginning or the end that all names share are removed; words are separated by -,
    _, . or spaces.
    """
    if len(names) < 2 or max(map(len, names)) <= _SHORT_NAME:
        return list(names)
    words = [re.split(r"([-_. ]+)", name) for name in names]
    for end in (0, -1):
        while min(map(len, words)) > 1 and len({each[end] for each in words}) == 1:
            for each in words:
                each.pop(end)
    short = ["".join(each).strip("-_. ") for each in words]
    return short if all(short) and len(set(short)) == len(set(names)) else list(names)


def _groups_table(audit: Audit) -> Table:
    smallest = audit.how.smallest_group
    table = _audit_table(
        f"95 % intervals in brackets; groups under {smallest} nodes are too small for one."
    )
    table.add_column(printable(audit.column))
    table.add_column("nodes", justify="right")
    several = len(audit.models) > 1
    for heading in _model_headings(audit):
        name = f"{heading}\n" if several else ""
        table.add_column(f"{name}accuracy (%)", justify="right", overflow="fold")
        if not several:  # four columns of intervals would not fit a terminal
            table.add_column("loss", justify="right")
    for index, group in enumerate(audit.models[0].groups):
        cells = [cell for model in audit.models for cell in _cells(model.groups[index], several)]
        style = "dim" if group.too_small else None
        table.add_row(printable(group.label), f"{group.nodes:,}", *cells, style=style)
    table.add_section()
    whole = [cell for model in audit.models for cell in _cells(model, several)]
    table.add_row("all", f"{audit.how.nodes:,}", *whole)
    return table


def _model_headings(audit: Audit) -> list[str]:
    return short_names([printable(model.name) for model in audit.models])


def _cells(figures: ModelAudit | GroupAudit, several: bool) -> list[str]:
    accuracy = _with_interval(figures.accuracy, "percent")
    return [accuracy] if several else [accuracy, _with_interval(figures.loss, "number")]


def _models_table(audit: Audit) -> Table:
    table = _audit_table(
        f"Shuffled: the mean bias with {printable(audit.column)} shuffled among the nodes. Without "
        "noise: the bias less what chance adds to it."
    )
    table.add_column("")
    for heading in _model_headings(audit):
        table.add_column(heading, justify="right", overflow="fold")
    for heading, show in _MODEL_METRICS.items():
        table.add_row(heading, *(show(model) for model in audit.models))
    return table


def _worst_tenth(model: ModelAudit) -> str:
    worst = next((each for each in model.worst if each.percent == 10), None)
    return "–" if worst is None else _with_interval(worst.loss, "number")


_MODEL_METRICS: dict[str, Callable[[ModelAudit], str]] = {
    "bias": AUDITED["bias"],
    "bias, shuffled": lambda model: AUDITED["shuffled"](model) if model.permutation.draws else "–",
    "bias, without noise": lambda model: number(model.net_variance.value),
    "bias, calibrated": AUDITED["calibrated"],
    "loss per doubling": lambda model: (
        "–" if model.slope is None else _with_interval(model.slope.loss, "number")
    ),
    "loss of worst 10 %": _worst_tenth,
}


def _with_interval(estimate: Estimate, unit: str) -> str:
    show = percent if unit == "percent" else _two_decimals
    if math.isnan(estimate.low):
        return show(estimate.value)
    return f"{show(estimate.value)} [{show(estimate.low)}, {show(estimate.high)}]"


def _two_decimals(value: float) -> str:
    """Two decimals, unless the number is very large or small."""
    if 0.01 <= abs(value) < 100 or value == 0:
        return f"{value:.2f}".replace("-", MINUS)
    return number(value)


def _audit_table(caption: str) -> Table:
    text = Text(caption, style="dim")
    return Table(box=box.SIMPLE_HEAD, caption=text, caption_justify="left", header_style="bold")
