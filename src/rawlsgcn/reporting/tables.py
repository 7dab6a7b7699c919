"""Tables for the terminal: results, a tuning, the pool of ``auto``, audits and the datasets.

Torch and matplotlib are not imported here, because ``rawlsgcn datasets`` uses this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import setup_text, with_interval
from .text_tables import (
    AUDITED,
    COMPARED,
    TRIAL_HEADINGS,
    best_figures,
    leaderboard_rows,
    result_cells,
    result_rows,
    trial_cells,
)

if TYPE_CHECKING:
    from ..evaluation.audit.findings import GroupAudit, ModelAudit
    from ..experiments.auditing.audit_result import Audit
    from ..experiments.model_search.result import AutoResult
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

_BEST = "bold green"
#: Names up to this length fit the heading of a column of three in a terminal of 80.
_SHORT_NAME = 16


class FittingTable(Table):
    """A table that is replaced by a ``narrower`` one where the console has too few columns."""

    narrower: Table | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=10_000), self).maximum
        if self.narrower is not None and wanted > options.max_width:
            yield self.narrower
        else:
            yield from super().__rich_console__(console, options)


def _fitting(make: Callable[[bool], FittingTable]) -> FittingTable:
    """The table of ``make(False)``, or where that is too wide of ``make(True)``."""
    table = make(False)
    table.narrower = make(True)
    return table


def _table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    styles: Iterable[str] = repeat(""),
    names: int = 1,
    no_wrap: bool = False,
) -> FittingTable:
    """A table of ``names`` and of numbers, to the right; what is not a ``Text`` has no markup."""
    table = FittingTable(
        box=box.SIMPLE_HEAD,
        caption=Text(f"\n{caption}", style="dim") if caption else None,
        caption_justify="left",
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )
    for place, heading in enumerate(map(Text, headings)):
        right = place >= names
        side: Any = {"justify": "right" if right else "left", "overflow": "fold"}
        table.add_column(heading, no_wrap=no_wrap and right, **side)
    for cells, style in zip(rows, styles, strict=False):
        table.add_row(*(Text(c) if isinstance(c, str) else c for c in cells), style=style)
    return table


def results_table(results: Result | Sequence[Result]) -> Table:
    """Show accuracy, bias, the worst-off degrees and the cost of each method.

    The best of each column is emphasized where there is something to compare. On fewer than a
    hundred columns the cost and the spread of the bias are omitted.

    Args:
        results: Results on the same graph and the same evaluated nodes.

    Returns:
        A rich table with one row for each result.

    Raises:
        RawlsError: The results are not on the same graph and nodes.
    """
    from ..experiments.comparison import Comparison

    results = Comparison.of(results)
    caption = f"{setup_text(results)}. {_RESULTS_LEGEND}"
    if any(each.failure is None and math.isnan(each.calibrated_bias.mean) for each in results):
        caption += " Why there is no calibrated bias (–), the note on temperature scaling says."
    headings = ["\nmethod", *(heading for heading, *_ in COMPARED), "worst-off\ndegrees"]
    best = best_figures(results)

    def table(narrow: bool) -> FittingTable:
        rows: list[list[str | Text]] = []
        spreads = ("accuracy",) if narrow else ("accuracy", "bias")
        for result, (name, *_), is_best in zip(results, result_rows(results), best, strict=True):
            shown = zip(result_cells(result, spreads), is_best, strict=True)
            cells = [Text(cell, style=_BEST if emphasized else "") for cell, emphasized in shown]
            worst = "" if result.failed else ", ".join(map(str, result.worst_off().index))
            cost = [f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}"]
            rows.append([name, *cells, worst or "–", *([] if narrow else cost)])
        costs = [] if narrow else ["para-\nmeters", "\nseconds"]
        return _table(caption, headings + costs, rows, no_wrap=not narrow)

    return _fitting(table)


_RESULTS_LEGEND = (
    "Low, high: accuracy of the quarters with the lowest and highest degrees. "
    "Less bias is better, but an under-confident model has less of it: read the calibrated one."
)


def tuning_table(tuning: Tuning) -> Table:
    """Show each combination of the grid, in the grid's order; the chosen one is emphasized.

    Args:
        tuning: The outcome of :func:`rawlsgcn.tune`.

    Returns:
        A rich table with one row for each combination.
    """
    trials, best, on_test = tuning.trials, tuning.best, tuning.best_on_test
    legend = "Chosen by accuracy on the validation nodes. " + (
        "The test nodes would choose the same."
        if best is on_test
        else "†: what the test nodes would choose (for comparison only)."
    )
    marks = ["→" if each is best else "†" if each is on_test else each.failed for each in trials]
    return _table(
        f"{setup_text([best])}. {legend}",
        ["", *tuning.grid, *TRIAL_HEADINGS],
        [[mark, *trial_cells(each, tuning.grid)] for mark, each in zip(marks, trials, strict=True)],
        styles=[_BEST if mark == "→" else "" for mark in marks],
        no_wrap=True,
    )


def leaderboard_table(result: AutoResult) -> Table:
    """Show the pool, the lowest validation loss first; chosen members are marked.

    On fewer columns than it needs, the validation accuracy and the seconds are omitted.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        A rich table with one row for each member.
    """

    def table(narrow: bool) -> FittingTable:
        headings, members = leaderboard_rows(result, narrow=narrow, exact=False)
        if narrow:
            headings = [heading.replace("validation", "") for heading in headings]
        return _table(
            _LEADERBOARD_LEGEND,
            ["", "\nmember", *headings],
            [["→" if row["weight"] else "", row["member"], *cells] for row, cells in members],
            styles=[_BEST if row["weight"] else "" for row, _ in members],
            names=2,
            no_wrap=True,
        )

    return _fitting(table)


_LEADERBOARD_LEGEND = (
    "→: a part of the answer. Everything is chosen by the loss, which is the cross entropy on the "
    "validation nodes after temperature scaling. The accuracies and the bias are those of the "
    "evaluated nodes; low degrees: the quarter with the lowest. Parameters: the numbers to keep."
)


def datasets_table(rows: Iterable[dict[str, Any]]) -> Table:
    """Show the datasets known by name, with the statistics of those that are on disk.

    Args:
        rows: For each dataset ``name``, ``title``, ``on_disk``, ``nodes``, ``edges``, ``features``,
            ``classes``, ``median_degree`` and ``isolated_nodes``; an unknown statistic is None or
            absent. ``damaged`` is the reason why it cannot be loaded.

    Returns:
        A rich table with one row for each dataset.
    """
    every = list(rows)

    def table(narrow: bool) -> FittingTable:
        names = {"name": "\nname"} if narrow else {"name": "\nname", "title": "\ngraph"}
        cells: list[list[Text]] = [
            [*(Text(printable(row[key])) for key in names), _on_disk(row)]
            + [Text(_count(row.get(key))) for key in _STATISTICS]
            for row in every
        ]
        headings = [*names.values(), "on\ndisk", *_STATISTICS.values()]
        return _table("", headings, cells, names=len(names) + 1)

    return _fitting(table)


_STATISTICS = {
    "nodes": "\nnodes",
    "edges": "\narcs",
    "features": "\nfeatures",
    "classes": "\nclasses",
    "median_degree": "median\ndegree",
    "isolated_nodes": "isolated\nnodes",
}


def _on_disk(row: dict[str, Any]) -> Text:
    if row.get("damaged"):
        return Text("flawed", style="red")
    return Text("yes", style="green") if row["on_disk"] else Text("no", style="dim")


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}".removesuffix(".0")


def audit_table(audit: Audit) -> Group:
    """Show an audit's groups (with their loss for a single model) and the metrics of each model.

    Args:
        audit: The audit.

    Returns:
        Two rich tables.
    """
    names = short_names([printable(model.name) for model in audit.models])
    several = len(names) > 1  # four columns of intervals would not fit a terminal

    def cells(figures: Sequence[ModelAudit | GroupAudit]) -> list[str]:
        accuracies = [with_interval(each.accuracy, "percent") for each in figures]
        return accuracies if several else [*accuracies, with_interval(figures[0].loss)]

    column = printable(audit.column)
    headings = [f"{name}\naccuracy (%)" for name in names] if several else ["accuracy (%)", "loss"]
    groups = _table(
        f"95 % intervals in brackets; groups under {audit.how.smallest_group} nodes are too small "
        "for one.",
        [column, "nodes", *headings],
        [
            [printable(same[0].label), f"{same[0].nodes:,}", *cells(same)]
            for same in zip(*(model.groups for model in audit.models), strict=True)
        ],
        styles=["dim" if group.too_small else "" for group in audit.models[0].groups],
    )
    groups.add_section()
    groups.add_row("all", f"{audit.how.nodes:,}", *cells(audit.models))
    metrics = list(AUDITED)[list(AUDITED).index("bias") :]
    models = _table(
        f"Shuffled: the mean bias with {column} shuffled among the nodes. Without noise: the bias "
        "less what chance adds to it.",
        ["", *names],
        [[metric, *map(AUDITED[metric], audit.models)] for metric in metrics],
    )
    return Group(groups, "", models)


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
