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
from .table_columns import LEADERBOARD, best_figures, result_cells, trial_cells

if TYPE_CHECKING:
    from ..experiments.comparison import Comparison
    from ..experiments.model_search import AutoResult
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


def _empty_table(caption: str = "") -> FittingTable:
    """A table without lines between rows, and with a caption under it."""
    return FittingTable(
        box=box.SIMPLE_HEAD,
        caption=Text(f"\n{caption}", style="dim") if caption else None,
        caption_justify="left",
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )


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
    table = _results_table(results, whole=True)
    table.narrower = _results_table(results, whole=False)
    return table


def _results_table(results: Comparison, whole: bool) -> FittingTable:
    missing = any(
        result.failure is None and math.isnan(result.calibrated_bias.mean) for result in results
    )
    legend = f"{_RESULTS_LEGEND} {_NOT_CALIBRATED}" if missing else _RESULTS_LEGEND
    table = _empty_table(f"{setup_text(results)}. {legend}")
    # Method names wrap before a number does.
    table.add_column("\nmethod", overflow="fold")
    headings = (
        "accuracy\n(%)",
        "of low\ndegrees",
        "of high\ndegrees",
        "\nbias",
        "calibrated\nbias",
        "worst-off\ndegrees",
        *(("para-\nmeters", "\nseconds") if whole else ()),
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=whole)
    for result, name, is_best in zip(results, results.names, best_figures(results), strict=True):
        cost = (f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}")
        shown = [*result_cells(result)]
        if not whole:
            shown[3] = number(result.bias.mean)
        table.add_row(
            Text(f"{name} ({result.failed})" if result.failed else name),
            *(
                Text(text, style=_BEST if emphasized else "")
                for text, emphasized in zip(shown, is_best, strict=True)
            ),
            _worst_off(result),
            *(cost if whole else ()),
        )
    return table


_RESULTS_LEGEND = (
    "Low, high: accuracy of the quarters with the lowest and highest degrees. "
    "Less bias is better, but an under-confident model has less of it: read the calibrated one."
)
_NOT_CALIBRATED = "Why there is no calibrated bias (–), the note on temperature scaling says."


def _worst_off(result: Result) -> str:
    if result.failed:
        return "–"
    return ", ".join(str(degree) for degree in result.worst_off().index) or "–"


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
    table = _empty_table(f"{setup_text([best])}. {legend}")
    table.add_column("")
    for name in tuning.grid:
        table.add_column(name, justify="right", no_wrap=True)
    for heading in ("validation\naccuracy", "test\naccuracy", "\nbias", "calibrated\nbias"):
        table.add_column(heading, justify="right", no_wrap=True)
    for trial in trials:
        chosen = trial is best
        table.add_row(
            "→" if chosen else "†" if trial is on_test else trial.failed,
            *trial_cells(trial, tuning.grid),
            style=_BEST if chosen else "",
        )
    return table


def leaderboard_table(result: AutoResult) -> Table:
    """Show the pool, the lowest validation loss first; chosen members are marked.

    On fewer columns than it needs, the validation accuracy and the seconds are omitted.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        A rich table with one row for each member.
    """
    table = _leaderboard_table(result, whole=True)
    table.narrower = _leaderboard_table(result, whole=False)
    return table


_LEADERBOARD_LEGEND = (
    "→: a part of the answer. Everything is chosen by the loss, which is the cross entropy on the "
    "validation nodes after temperature scaling. The accuracies and the bias are those of the "
    "evaluated nodes; low degrees: the quarter with the lowest. Parameters: the numbers to keep."
)


def _leaderboard_table(result: AutoResult, whole: bool) -> FittingTable:
    table = _empty_table(_LEADERBOARD_LEGEND)
    table.add_column("")
    table.add_column("\nmember", overflow="fold")
    columns = [column for column in LEADERBOARD if whole or not column[3]]
    for heading, *_ in columns:
        if not whole and heading == "validation\nloss":
            heading = "\nloss"
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.leaderboard.to_dict("records"):
        table.add_row(
            "→" if row["weight"] else "",
            Text(printable(row["member"])),
            *(show(row[name]) for _, name, show, _ in columns),
            style=_BEST if row["weight"] else "",
        )
    return table


def datasets_table(rows: Iterable[dict[str, Any]]) -> Table:
    """Show the datasets known by name, with the statistics of those that are on disk.

    Args:
        rows: For each dataset ``name``, ``title``, ``on_disk``, ``nodes``, ``edges``, ``features``,
            ``classes``, ``median_degree`` and ``isolated_nodes``; an unknown statistic is None or
            absent. ``damaged`` is the reason why its files cannot be read.

    Returns:
        A rich table with one row for each dataset.
    """
    rows = list(rows)
    table = _datasets_table(rows, ("name", "title"))
    table.narrower = _datasets_table(rows, ("name",))
    return table


def _datasets_table(rows: list[dict[str, Any]], text_columns: tuple[str, ...]) -> FittingTable:
    table = _empty_table()
    for key in text_columns:
        table.add_column(_HEADINGS[key], overflow="fold")
    table.add_column("on\ndisk")
    statistics = ("nodes", "edges", "features", "classes", "median_degree", "isolated_nodes")
    for key in statistics:
        table.add_column(_HEADINGS.get(key, f"\n{key}"), justify="right")
    for row in rows:
        table.add_row(
            *(Text(printable(row[key])) for key in text_columns),
            _on_disk(row),
            *(_count(row.get(key)) for key in statistics),
        )
    return table


_HEADINGS = {
    "name": "\nname",
    "title": "\ngraph",
    "median_degree": "median\ndegree",
    "isolated_nodes": "isolated\nnodes",
}


def _on_disk(row: dict[str, Any]) -> Text:
    if row.get("damaged"):
        return Text("damaged", style="red")
    return Text("yes", style="green") if row["on_disk"] else Text("no", style="dim")


def _count(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
