"""Tables for the terminal: whole in a hundred columns, without their last details in eighty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import names, number, percent, spread, together, where

if TYPE_CHECKING:
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

_BEST = "bold green"
_UNBOUNDED = 10_000


class FittingTable(Table):
    """A table that gives way to a ``narrower`` one where the console has too few columns."""

    narrower: Table | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=_UNBOUNDED), self).maximum
        if self.narrower is not None and wanted > options.max_width:
            yield self.narrower
        else:
            yield from super().__rich_console__(console, options)


def results_table(results: Result | Sequence[Result]) -> Table:
    """One row a method: how accurate, how biased, who is worst off, at what cost.

    The best figure of a column is emphasised where there is something to compare; equal figures,
    as shown, are all best. On fewer than a hundred columns the cost and the spread of the bias
    are left out.
    """
    results = together(results)
    table = _results_table(results, whole=True)
    table.narrower = _results_table(results, whole=False)
    return table


def _results_table(results: list[Result], whole: bool) -> FittingTable:
    table = _table(caption=Text(f"\n{where(results)}. {_LEGEND}", style="dim"))
    # Method names wrap before a figure does.
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
    # A figure of a method that has not learned is not compared with anything.
    sound = [result.failure is None for result in results]
    styles = zip(
        _emphasis([result.accuracy.mean for result in results], sound, percent, max),
        _emphasis([result.low_degree_accuracy.mean for result in results], sound, percent, max),
        _emphasis([result.high_degree_accuracy.mean for result in results], sound, percent, max),
        _emphasis([result.bias.mean for result in results], sound, number, min),
        _emphasis([result.calibrated_bias.mean for result in results], sound, number, min),
        strict=True,
    )
    for result, name, style in zip(results, names(results), styles, strict=True):
        bias = spread(result.bias, "number") if whole else number(result.bias.mean)
        cost = (f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}")
        table.add_row(
            Text(f"{name} ({result.failed})" if result.failed else name),
            Text(spread(result.accuracy, "percent"), style=style[0]),
            Text(percent(result.low_degree_accuracy.mean), style=style[1]),
            Text(percent(result.high_degree_accuracy.mean), style=style[2]),
            Text(bias, style=style[3]),
            Text(number(result.calibrated_bias.mean), style=style[4]),
            _worst_off(result),
            *(cost if whole else ()),
        )
    return table


def _worst_off(result: Result) -> str:
    if result.failed:
        return "–"
    return ", ".join(str(degree) for degree in result.worst_off().index) or "–"


_LEGEND = (
    "Low, high: accuracy of the quarters with the lowest and highest degrees. "
    "Less bias is better, but a blurred model has less of it: read the calibrated one."
)


def datasets_table(rows: Iterable[dict[str, Any]]) -> Table:
    """The datasets known by name, with the statistics of those that are on disk.

    A row has ``name``, ``title``, ``on_disk``, ``nodes``, ``edges``, ``features``, ``classes``,
    ``median_degree`` and ``isolated_nodes``; a statistic that is not known is None or absent.
    A row whose files cannot be read has ``damaged``, the reason.
    """
    rows = list(rows)
    table = _datasets_table(rows, ("name", "title"))
    table.narrower = _datasets_table(rows, ("name",))
    return table


def _datasets_table(rows: list[dict[str, Any]], called: tuple[str, ...]) -> FittingTable:
    table = _table(caption=None)
    for key in called:
        table.add_column(_HEADINGS[key], overflow="fold")
    table.add_column("on\ndisk")
    statistics = ("nodes", "edges", "features", "classes", "median_degree", "isolated_nodes")
    for key in statistics:
        table.add_column(_HEADINGS.get(key, f"\n{key}"), justify="right")
    for row in rows:
        table.add_row(
            *(Text(printable(row[key])) for key in called),
            _on_disk(row),
            *(_count(row.get(key)) for key in statistics),
        )
    return table


def _on_disk(row: dict[str, Any]) -> Text:
    if row.get("damaged"):
        return Text("damaged", style="red")
    return Text("yes", style="green") if row["on_disk"] else Text("no", style="dim")


_HEADINGS = {
    "name": "\nname",
    "title": "\ngraph",
    "median_degree": "median\ndegree",
    "isolated_nodes": "isolated\nnodes",
}


def _count(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _table(caption: Text | None) -> FittingTable:
    return FittingTable(
        box=box.SIMPLE_HEAD,
        caption=caption,
        caption_justify="left",
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )


def _emphasis(
    values: list[float],
    sound: list[bool],
    show: Callable[[float], str],
    best_of: Callable[[list[float]], float],
) -> list[str]:
    """The style of each value: emphasis for those of the sound ones that look like the best."""
    finite = [value for value, fit in zip(values, sound, strict=True) if fit and value == value]
    if len(finite) < 2:
        return [""] * len(values)
    best = show(best_of(finite))
    if all(show(value) == best for value in finite):
        return [""] * len(values)
    return [
        _BEST if fit and show(value) == best else ""
        for value, fit in zip(values, sound, strict=True)
    ]


def tuning_table(tuning: Tuning) -> Table:
    """One row a combination of the grid, in the grid's order; the chosen one is emphasised."""
    trials, best, on_test = tuning.trials, tuning.best, tuning.best_on_test
    legend = (
        "Chosen by accuracy on the validation nodes. "
        + ("The test nodes would choose the same." if best is on_test else "")
        + ("" if best is on_test else "†: what the test nodes would choose (for comparison only).")
    )
    table = _table(caption=Text(f"\n{where([best])}. {legend}", style="dim"))
    table.add_column("")
    for name in tuning.grid:
        table.add_column(name, justify="right", no_wrap=True)
    for heading in ("validation\naccuracy", "test\naccuracy", "\nbias", "calibrated\nbias"):
        table.add_column(heading, justify="right", no_wrap=True)
    for trial in trials:
        chosen = trial is best
        table.add_row(
            "→" if chosen else "†" if trial is on_test else trial.failed,
            *(f"{trial.settings[name]}" for name in tuning.grid),
            percent(trial.validation_accuracy.mean),
            spread(trial.accuracy, "percent"),
            spread(trial.bias, "number"),
            number(trial.calibrated_bias.mean),
            style=_BEST if chosen else "",
        )
    return table
