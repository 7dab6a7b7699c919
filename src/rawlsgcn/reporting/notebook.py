"""Rich displays for notebooks: what a result, a comparison or an audit shows by itself.

Only inline styles, which notebooks keep, and colours that hold on light and dark themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from markupsafe import Markup

from .._core.text import printable
from .audit_figures import curves
from .audit_words import p_words, verdict
from .figures import by_degree, side_by_side
from .formatting import names, number, percent, spread, together, where
from .svg import inline_svg

if TYPE_CHECKING:
    from ..experiments.audit_result import Audit
    from ..experiments.result import Result

# The page's variables, for figures outside of the page: the notebook's own ink, mid-tone colours.
_VARIABLES = (
    "--ink: currentColor; --faint: currentColor; --grid: #8884; --card: transparent; "
    "--font: inherit; --series-0: #2f8fd0; --series-1: #e0701f; --series-2: #16a37a; "
    "--series-3: #cc79a7; --series-4: #cf9010; --series-5: #6fa8dc"
)
_CELL = "padding: .15em .8em .15em 0; text-align: right; white-space: nowrap"
_WORDS = "padding: .15em .8em .15em 0; text-align: left"


def results_html(results: Result | Sequence[Result]) -> str:
    """One row a method and the paper's Figure 1 or 3."""
    results = together(results)
    rows = [
        (
            label,
            spread(result.accuracy, "percent"),
            percent(result.low_degree_accuracy.mean),
            percent(result.high_degree_accuracy.mean),
            spread(result.bias, "number"),
            number(result.calibrated_bias.mean),
        )
        for result, label in zip(results, names(results), strict=True)
    ]
    headings = ("method", "accuracy (%)", "of low degrees", "of high degrees", "bias", "calibrated")
    said = "Average loss and accuracy by degree; the figures are in result.frame."
    figure = by_degree(results[0]) if len(results) == 1 else side_by_side(results)
    table = _table(headings, rows)
    drawn = Markup(inline_svg(figure, _own("results", table), said))
    width = max(36, min(64, 24 * len(results)))
    cautions: list[str] = []
    for result, label in zip(results, names(results), strict=True):
        failure = result.failure_of(label)
        if failure is not None:
            cautions.append(failure)
        elif result.caution is not None:
            cautions.append(f"{label}: {result.caution}")
    return _shown(
        table,
        _lines([f"{where(results)}.", *cautions]),
        Markup('<div style="max-width: {}rem">{}</div>').format(width, drawn),
    )


def audit_html(audit: Audit) -> str:
    """The verdict, a row a model, and the curves with their bands."""
    words = verdict(audit)
    rows = [
        (
            printable(model.name),
            percent(model.accuracy.value),
            "–" if model.by_accuracy is None else printable(model.by_accuracy.worst),
            number(model.bias),
            number(model.net_variance.value),
            p_words(model.permutation.p, model.permutation.draws),
        )
        for model in audit.models
    ]
    headings = ("model", "accuracy (%)", "worst group", "bias", "net of chance", "shuffled")
    said = "Average loss and accuracy by group, with 95 % intervals; see audit.models."
    table = _table(headings, rows)
    drawn = Markup(inline_svg(curves(audit), _own("audit", table), said))
    return _shown(
        _headline(words.headline),
        _list(words.sentences),
        table,
        Markup('<div style="max-width: 44rem">{}</div>').format(drawn),
        _lines(["audit.to_html(path) writes the whole page."]),
    )


def _own(kind: str, content: str) -> str:
    """A name for the ids of a picture, different for displays of different things."""
    return f"{kind}-{crc32(content.encode()):08x}"


def _shown(*parts: Markup) -> str:
    inside = Markup("\n").join(parts)
    return str(Markup('<div class="rawlsgcn" style="{}">{}</div>').format(_VARIABLES, inside))


def _headline(text: str) -> Markup:
    return Markup('<p style="font-weight: 600; font-size: 1.1em; margin: .3em 0">{}</p>').format(
        text
    )


def _lines(texts: Iterable[str]) -> Markup:
    return Markup("").join(
        Markup('<p style="margin: .2em 0; opacity: .8">{}</p>').format(text) for text in texts
    )


def _list(texts: Iterable[str]) -> Markup:
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
    return Markup("<ul>{}</ul>").format(items)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table whose first column is words, the others figures."""

    def row(cells: Sequence[str], head: bool) -> Markup:
        made = Markup("").join(
            Markup('<{0} scope="{1}" style="{2}">{3}</{0}>').format(
                "th", "col" if head else "row", _CELL if place else _WORDS, text
            )
            if head or not place
            else Markup('<td style="{}">{}</td>').format(_CELL, text)
            for place, text in enumerate(cells)
        )
        return Markup("<tr>{}</tr>").format(made)

    body = Markup("").join(row(cells, head=False) for cells in rows)
    return Markup(
        '<table style="border-collapse: collapse; font-variant-numeric: tabular-nums">'
        "<thead>{}</thead><tbody>{}</tbody></table>"
    ).format(row(headings, head=True), body)
