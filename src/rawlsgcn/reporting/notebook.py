"""What notebooks show of a result, a comparison or an audit.

Only inline styles, which notebooks keep, and colors that are visible on light and dark themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from markupsafe import Markup

from .._core.text import printable
from ..experiments.comparison import Comparison
from ..experiments.model_search import AutoResult
from .audit_figures import curves
from .audit_verdict import verdict
from .figure_style import inline_svg
from .figures import by_degree, side_by_side
from .formatting import number, p_text, percent, setup_text
from .table_columns import result_cells, trial_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..experiments.auditing.audit_result import Audit
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

# The page's variables, for figures outside of the page: the notebook's own ink, mid-tone colors.
_VARIABLES = (
    "--ink: currentColor; --faint: currentColor; --grid: #8884; --card: transparent; "
    "--font: inherit; --series-0: #2f8fd0; --series-1: #e0701f; --series-2: #16a37a; "
    "--series-3: #cc79a7; --series-4: #cf9010; --series-5: #6fa8dc"
)
_NUMBER = "padding: .15em .8em .15em 0; text-align: right; white-space: nowrap"
_NAME = "padding: .15em .8em .15em 0; text-align: left"


def results_html(results: Result | Sequence[Result]) -> str:
    """One row for each method, and the paper's Figure 1 or 3; of ``auto`` also how it chose."""
    if isinstance(results, AutoResult):
        return _auto_html(results)
    results = Comparison.of(results)
    rows, cautions = [], []
    for name, result in zip(results.names, results, strict=True):
        rows.append((name, *result_cells(result)))
        failure = result.failure_of(name)
        if failure is not None:
            cautions.append(failure)
        elif result.caution is not None:
            cautions.append(f"{name}: {result.caution}")
    headings = ("method", "accuracy (%)", "of low degrees", "of high degrees", "bias", "calibrated")
    table = _table(headings, rows)
    figure = by_degree(results[0]) if len(results) == 1 else side_by_side(results)
    words = "Average loss and accuracy by degree; the numbers are in result.by_degree."
    return _display(
        table,
        _lines([f"{setup_text(results)}.", *cautions]),
        _picture(figure, f"results-{_checksum(table)}", words, max(36, min(64, 24 * len(results)))),
    )


def _auto_html(result: AutoResult) -> str:
    """The answer beside the tuned GCN, why it was chosen, and the pool."""
    rows = [
        (
            f"→ {printable(row['member'])}" if row["weight"] else printable(row["member"]),
            number(row["validation_loss"]),
            percent(row["accuracy"]),
            percent(row["low_degree_accuracy"]),
            number(row["calibrated_bias"]),
            f"{row['parameters']:,}",
        )
        for row in result.leaderboard.to_dict("records")
    ]
    headings = (
        *("member (→ chosen)", "validation loss", "accuracy (%)", "of low degrees"),
        *("calibrated bias", "parameters"),
    )
    return _display(
        Markup(results_html(result.comparison())),
        _list(map(printable, result.explanation)),
        _table(headings, rows),
    )


def tuning_html(tuning: Tuning) -> str:
    """A row for each trial, the chosen one marked."""
    best = None if all(trial.diverged for trial in tuning.trials) else tuning.best
    rows = [
        ("→" if trial is best else "", *trial_cells(trial, tuning.grid)) for trial in tuning.trials
    ]
    headings = ("", *tuning.grid, "validation (%)", "test (%)", "bias", "calibrated")
    chosen = f"{setup_text(tuning.trials[:1])}. → chosen by accuracy on the validation nodes."
    return _display(_table(headings, rows), _lines([chosen]))


def audit_html(audit: Audit) -> str:
    """The verdict, a row for each model, and the curves with their intervals."""
    words = verdict(audit)
    rows = [
        (
            printable(model.name),
            percent(model.accuracy.value),
            "–" if model.by_accuracy is None else printable(model.by_accuracy.worst),
            number(model.bias),
            f"{number(model.permutation.mean)}, "
            f"{p_text(model.permutation.p, model.permutation.draws)}",
            "–" if model.scaling is None else number(model.scaling.calibrated_bias),
        )
        for model in audit.models
    ]
    headings = ("model", "accuracy (%)", "worst group", "bias", "shuffled", "calibrated")
    table = _table(headings, rows)
    described = "Average loss and accuracy by group, with 95 % intervals; see audit.models."
    return _display(
        Markup('<p style="font-weight: 600; font-size: 1.1em; margin: .3em 0">{}</p>').format(
            words.headline
        ),
        _list(words.lines[1:]),
        table,
        _picture(curves(audit), f"audit-{_checksum(table)}", described, 44),
        _lines(["audit.to_html(path) writes the whole page."]),
    )


def _checksum(content: str) -> str:
    """Makes the ids of a picture different for displays of different things."""
    return f"{crc32(content.encode()):08x}"


def _display(*blocks: Markup) -> str:
    inside = Markup("\n").join(blocks)
    return str(Markup('<div class="rawlsgcn" style="{}">{}</div>').format(_VARIABLES, inside))


def _picture(figure: Figure, name: str, words: str, width: int) -> Markup:
    drawn = Markup(inline_svg(figure, name, words))
    return Markup('<div style="max-width: {}rem">{}</div>').format(width, drawn)


def _lines(texts: Iterable[str]) -> Markup:
    return Markup("").join(
        Markup('<p style="margin: .2em 0; opacity: .8">{}</p>').format(text) for text in texts
    )


def _list(texts: Iterable[str]) -> Markup:
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
    return Markup("<ul>{}</ul>").format(items)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table with names in the first column and numbers in the others."""

    def row(cells: Sequence[str], head: bool) -> Markup:
        made = Markup("").join(
            Markup('<{0} scope="{1}" style="{2}">{3}</{0}>').format(
                "th", "col" if head else "row", _NUMBER if place else _NAME, text
            )
            if head or not place
            else Markup('<td style="{}">{}</td>').format(_NUMBER, text)
            for place, text in enumerate(cells)
        )
        return Markup("<tr>{}</tr>").format(made)

    body = Markup("").join(row(cells, head=False) for cells in rows)
    return Markup(
        '<table style="border-collapse: collapse; font-variant-numeric: tabular-nums">'
        "<thead>{}</thead><tbody>{}</tbody></table>"
    ).format(row(headings, head=True), body)
