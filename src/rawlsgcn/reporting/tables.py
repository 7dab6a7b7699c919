"""Tables for the terminal: of results, of a tuning, of an audit and of the datasets.

Torch and matplotlib are not imported here, because ``rawlsgcn datasets`` uses this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .._core.text import printable
from .formatting import (
    MINUS,
    best_of,
    number,
    p_text,
    percent,
    result_cells,
    setup_text,
    trial_cells,
)

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, GroupAudit, ModelAudit
    from ..experiments.audit_result import Audit
    from ..experiments.comparison import Comparison
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

BEST = "bold green"
_UNBOUNDED = 10_000
_SHORT_NAME = 16
"""Names up to this length fit the heading of a column of three in a terminal of 80."""


class FittingTable(Table):
    """A table that is replaced by a ``narrower`` one where the console has too few columns."""

    narrower: Table | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = Measurement.get(console, options.update(width=_UNBOUNDED), self).maximum
        if self.narrower is not None and wanted > options.max_width:
            yield self.narrower
        else:
            yield from super().__rich_console__(console, options)


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
    legend = f"{_LEGEND} {_NOT_CALIBRATED}" if missing else _LEGEND
    table = plain_table(caption=Text(f"\n{setup_text(results)}. {legend}", style="dim"))
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
    # A number of a method that has not learned is not compared with anything.
    learned = [result.failure is None for result in results]
    best = zip(
        *(
            best_of([getattr(result, metric).mean for result in results], learned, show, choose)
            for metric, show, choose in _COMPARED
        ),
        strict=True,
    )
    for result, name, is_best in zip(results, results.names, best, strict=True):
        cost = (f"{result.parameters:,}", f"{sum(result.seconds.values()):,.1f}")
        shown = [*result_cells(result)]
        if not whole:
            shown[3] = number(result.bias.mean)
        table.add_row(
            Text(f"{name} ({result.failed})" if result.failed else name),
            *(
                Text(text, style=BEST if emphasized else "")
                for text, emphasized in zip(shown, is_best, strict=True)
            ),
            _worst_off(result),
            *(cost if whole else ()),
        )
    return table


_COMPARED: tuple[tuple[str, Callable[[float], str], Callable[[list[float]], float]], ...] = (
    ("accuracy", percent, max),
    ("low_degree_accuracy", percent, max),
    ("high_degree_accuracy", percent, max),
    ("bias", number, min),
    ("calibrated_bias", number, min),
)
_LEGEND = (
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
    table = plain_table(caption=Text(f"\n{setup_text([best])}. {legend}", style="dim"))
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
            *trial_cells(trial),
            style=BEST if chosen else "",
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
    table = plain_table(caption=None)
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


def _shuffled(model: ModelAudit) -> str:
    test = model.permutation
    return f"{number(test.mean)}, {p_text(test.p, test.draws)}" if test.draws else "–"


def _worst_tenth(model: ModelAudit) -> str:
    worst = next((each for each in model.worst if each.percent == 10), None)
    return "–" if worst is None else _with_interval(worst.loss, "number")


_MODEL_METRICS: dict[str, Callable[[ModelAudit], str]] = {
    "bias": lambda model: number(model.bias),
    "bias, shuffled": _shuffled,
    "bias, without noise": lambda model: number(model.net_variance.value),
    "bias, calibrated": lambda model: (
        "–" if model.scaling is None else number(model.scaling.calibrated_bias)
    ),
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
    if 0.01 <= abs(value) < 100:
        return f"{value:.2f}".replace("-", MINUS)
    return number(value)


def _audit_table(caption: str) -> Table:
    text = Text(caption, style="dim")
    return Table(box=box.SIMPLE_HEAD, caption=text, caption_justify="left", header_style="bold")


def plain_table(caption: Text | None) -> FittingTable:
    """An empty table without lines between rows, and with a caption under it."""
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
