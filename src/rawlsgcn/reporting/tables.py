"""Tables for the terminal: of results, of a tuning, of the pool of ``auto`` and of the datasets.

Torch and matplotlib are not imported here, because ``rawlsgcn datasets`` uses this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import number, setup_text
from .text_tables import LEADERBOARD, best_figures, result_rows, trial_cells

if TYPE_CHECKING:
    from ..experiments.model_search.result import AutoResult
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

_BEST = "bold green"
_UNBOUNDED = 10_000


class FittingTable(Table):
    """A table that is replaced by a ``narrower`` one where the console has too few columns."""

    narrower: Table | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=_UNBOUNDED), self).maximum
        if self.narrower is not None and wanted > options.max_width:
            yield self.narrower
        else:
            yield from super().__rich_console__(console, options)


def _table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[tuple[Sequence[str | Text], str]],
    names: int = 1,
    no_wrap: bool = True,
) -> FittingTable:
    """A table of ``names``, whose columns are folded, and of numbers: cells and a style a row."""
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
    for place, heading in enumerate(headings):
        if place < names:  # names wrap before a number does
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=no_wrap)
    for cells, style in rows:
        table.add_row(*cells, style=style)
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
    missing = any(
        result.failure is None and math.isnan(result.calibrated_bias.mean) for result in results
    )
    legend = f"{_RESULTS_LEGEND} {_NOT_CALIBRATED}" if missing else _RESULTS_LEGEND
    caption = f"{setup_text(results)}. {legend}"
    wide: list[tuple[list[str | Text], str]] = []
    narrow: list[tuple[list[str | Text], str]] = []
    best = best_figures(results)
    for result, (name, *shown), is_best in zip(results, result_rows(results), best, strict=True):
        styles = [_BEST if emphasized else "" for emphasized in is_best]
        cells = [Text(text, style=style) for text, style in zip(shown, styles, strict=True)]
        bias = Text(number(result.bias.mean), style=styles[3])
        cost = f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}"
        worst = "" if result.failed else ", ".join(map(str, result.worst_off().index))
        wide.append(([Text(name), *cells, worst or "–", *cost], ""))
        narrow.append(([Text(name), *cells[:3], bias, *cells[4:], worst or "–"], ""))
    table = _table(caption, _RESULTS_HEADINGS, wide)
    table.narrower = _table(caption, _RESULTS_HEADINGS[:-2], narrow, no_wrap=False)
    return table


_RESULTS_HEADINGS = (
    *("\nmethod", "accuracy\n(%)", "of low\ndegrees", "of high\ndegrees", "\nbias"),
    *("calibrated\nbias", "worst-off\ndegrees", "para-\nmeters", "\nseconds"),
)
_RESULTS_LEGEND = (
    "Low, high: accuracy of the quarters with the lowest and highest degrees. "
    "Less bias is better, but an under-confident model has less of it: read the calibrated one."
)
_NOT_CALIBRATED = "Why there is no calibrated bias (–), the note on temperature scaling says."


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
    headings = ("validation\naccuracy", "test\naccuracy", "\nbias", "calibrated\nbias")
    rows = [
        (
            ("→" if t is best else "†" if t is on_test else t.failed, *trial_cells(t, tuning.grid)),
            _BEST if t is best else "",
        )
        for t in trials
    ]
    return _table(f"{setup_text([best])}. {legend}", ("", *tuning.grid, *headings), rows)


def leaderboard_table(result: AutoResult) -> Table:
    """Show the pool, the lowest validation loss first; chosen members are marked.

    On fewer columns than it needs, the validation accuracy and the seconds are omitted.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        A rich table with one row for each member.
    """
    table, narrower = (_leaderboard_table(result, whole) for whole in (True, False))
    table.narrower = narrower
    return table


_LEADERBOARD_LEGEND = (
    "→: a part of the answer. Everything is chosen by the loss, which is the cross entropy on the "
    "validation nodes after temperature scaling. The accuracies and the bias are those of the "
    "evaluated nodes; low degrees: the quarter with the lowest. Parameters: the numbers to keep."
)


def _leaderboard_table(result: AutoResult, whole: bool) -> FittingTable:
    columns = [column for column in LEADERBOARD if whole or not column[3]]
    headings = [heading if whole else heading.replace("validation", "") for heading, *_ in columns]
    rows = [
        (
            (
                "→" if row["weight"] else "",
                Text(printable(row["member"])),
                *(show(row[name]) for _, name, show, _ in columns),
            ),
            _BEST if row["weight"] else "",
        )
        for row in result.leaderboard.to_dict("records")
    ]
    return _table(_LEADERBOARD_LEGEND, ("", "\nmember", *headings), rows, names=2)


def datasets_table(rows: Iterable[dict[str, Any]]) -> Table:
    """Show the datasets known by name, with the statistics of those that are on disk.

    Args:
        rows: For each dataset ``name``, ``title``, ``on_disk``, ``nodes``, ``edges``, ``features``,
            ``classes``, ``median_degree`` and ``isolated_nodes``; an unknown statistic is None or
            absent. ``damaged`` is the reason why it cannot be loaded.

    Returns:
        A rich table with one row for each dataset.
    """
    names, on_disk = ("\nname", "\ngraph"), "on\ndisk"
    wide: list[tuple[list[str | Text], str]] = []
    narrow: list[tuple[list[str | Text], str]] = []
    for row in rows:
        statistics = [_count(row.get(key)) for key in _STATISTICS]
        name, title = (Text(printable(row[key])) for key in ("name", "title"))
        wide.append(([name, title, _on_disk(row), *statistics], ""))
        narrow.append(([name, _on_disk(row), *statistics], ""))
    headings = (on_disk, *_STATISTICS.values())
    table = _table("", (*names, *headings), wide, names=3, no_wrap=False)
    table.narrower = _table("", (names[0], *headings), narrow, names=2, no_wrap=False)
    return table


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
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
