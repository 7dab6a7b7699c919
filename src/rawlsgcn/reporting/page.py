"""The report: one HTML file that needs nothing else, for reading, sending and printing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .._core.atomic_files import atomic_file
from ..evaluation.calibration import CalibrationOutcome
from .accuracy_bias_plot import plane
from .figures import by_degree, degrees, side_by_side
from .svg import inline_svg
from .trend import shown_groups, trend
from .verdict import Quarters, verdict
from .wording import (
    dataset_name,
    evaluated,
    names,
    number,
    percent,
    printable,
    several,
    spread,
    together,
    where,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..experiments.result import Result, Spread


def report(
    results: Result | Sequence[Result], path: str | Path, *, command: str | None = None
) -> Path:
    """Write what was found about one graph as a self-contained page and give its path back.

    Args:
        results: One result, or several on the same graph and the same evaluated nodes.
        path: The HTML file; it is written whole or not at all.
        command: The command line that made the results, if there is one to be shown.
    """
    html = render(results, command=command)
    path = Path(path)
    with atomic_file(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return path


def render(results: Result | Sequence[Result], *, command: str | None = None) -> str:
    """The page of :func:`report` as text."""
    from .._core.version import __version__

    results = together(results)
    first, labels = results[0], names(results)
    context = {
        "dataset": dataset_name(first.dataset, first.synthetic),
        "synthetic": first.synthetic,
        "where": where(results),
        "verdict": verdict(results),
        "overview": _overview(results, labels),
        "figures": _figures(results, labels),
        "worst": [
            {"name": label, "rows": _rows(result.worst_off())}
            for result, label in zip(results, labels, strict=True)
        ],
        "groups": [
            {"name": label, "rows": _rows(result.frame), "count": len(result.frame)}
            for result, label in zip(results, labels, strict=True)
        ],
        "runs": _runs(results, labels),
        "caution": _caution(results, labels),
        "settings": _settings(results),
        "names": labels,
        "notes": list(dict.fromkeys(printable(note) for r in results for note in r.notes)),
        "quarters": Quarters.of(first),
        "evaluated": evaluated(first),
        "version": __version__,
        "command": None if command is None else printable(command),
    }
    return environment().get_template("page.html.j2").render(context)


def environment() -> Environment:
    """The templates of this room; whatever goes into them is escaped."""
    made = Environment(
        loader=PackageLoader(__package__ or "rawlsgcn.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A number and its per cent sign stay on one line.
    made.filters["unbroken"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    made.filters["grouped"] = lambda count: f"{count:,}"
    return made


def _overview(results: list[Result], labels: list[str]) -> list[dict[str, Any]]:
    """The rows of the main table; a figure says whether it is the best of its column."""
    columns: list[tuple[list[Spread], str, int]] = [
        ([result.accuracy for result in results], "percent", 1),
        ([result.low_degree_accuracy for result in results], "percent", 1),
        ([result.high_degree_accuracy for result in results], "percent", 1),
        ([result.bias for result in results], "number", -1),
        ([result.calibrated_bias for result in results], "number", -1),
    ]
    learned = [result.failure is None for result in results]
    cells = [_cells(figures, kind, direction, learned) for figures, kind, direction in columns]
    return [
        {
            "name": label,
            "failed": result.failed,
            "cells": [column[row] for column in cells],
            "parameters": f"{result.parameters:,}",
            "seconds": f"{sum(result.seconds.values()):,.1f}",
        }
        for row, (result, label) in enumerate(zip(results, labels, strict=True))
    ]


def _cells(
    figures: list[Spread], kind: str, direction: int, learned: list[bool]
) -> list[dict[str, Any]]:
    """A column; the best is the best of those that have learned, where these differ."""
    show = percent if kind == "percent" else number
    able = [figure for figure, counts in zip(figures, learned, strict=True) if counts]
    finite = [direction * figure.mean for figure in able if figure.mean == figure.mean]
    best = show(direction * max(finite)) if finite else ""
    told_apart = len({show(figure.mean) for figure in able}) > 1
    return [
        {
            "text": spread(figure, kind),
            "best": counts and told_apart and show(figure.mean) == best,
        }
        for figure, counts in zip(figures, learned, strict=True)
    ]


def _rows(frame: pd.DataFrame) -> list[dict[str, str]]:
    return [
        {
            "degree": f"{degree:,}",
            "count": f"{int(row['count']):,}",
            "accuracy": percent(row["accuracy"]),
            "accuracy_interval": _interval(row, "accuracy", percent),
            "loss": number(row["loss"]),
            "loss_interval": _interval(row, "loss", number),
        }
        for degree, row in zip(frame.index, frame.to_dict("records"), strict=True)
    ]


def _interval(row: dict[Any, Any], name: str, show: Callable[[float], str]) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "–" if low != low else f"{show(low)} to {show(high)}"


def _runs(results: list[Result], labels: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "name": label,
            "seed": seed,
            "cells": [
                percent(judgement.accuracy),
                percent(judgement.low_degree_accuracy),
                percent(judgement.high_degree_accuracy),
                number(judgement.bias),
                number(judgement.calibrated_bias),
                number(judgement.temperature),
            ],
        }
        for result, label in zip(results, labels, strict=True)
        for seed, judgement in zip(result.seeds, result.judgements, strict=True)
    ]


def _figures(results: list[Result], labels: list[str]) -> list[dict[str, Any]]:
    """Figures 1 or 3, 2 and the plane, each with what a screen reader says instead."""
    first = results[0]
    dataset = dataset_name(first.dataset, first.synthetic)
    said = [_said(result, label) for result, label in zip(results, labels, strict=True)]
    drawn = by_degree(first) if len(results) == 1 else side_by_side(results)
    degree = first.degree
    low, high = int(degree.min()), int(degree.max())
    return [
        {
            "svg": Markup(inline_svg(drawn, "by-degree", " ".join(said))),
            "columns": len(results),
            "caption": "Average loss (top) and accuracy (bottom) of the nodes of each degree. "
            "A dot is a degree with more than five evaluated nodes, larger for more nodes; its "
            "bar is the 95 % bootstrap interval; the line is the regression line of the dots.",
        },
        {
            "svg": Markup(
                inline_svg(
                    degrees(first.graph),
                    "degrees",
                    f"Degrees of the nodes of {dataset} in A, {low:,} to {high:,}, against their "
                    "degrees in the renormalised Laplacian; the doubly stochastic form gives "
                    "every node degree 1.",
                )
            ),
            "columns": 1,
            "caption": "The degree of every node in the graph (A) against its degree in the "
            "matrix a GCN multiplies with (Â). A node weighs in the gradient by its degree in Â "
            "(Theorem 1), so that nodes low on this picture are learned from less. The doubly "
            "stochastic form gives every node the same weight, the dashed line.",
        },
        *([_plane(results, labels)] if len(results) > 1 else []),
    ]


def _plane(results: list[Result], labels: list[str]) -> dict[str, Any]:
    places = [
        f"{label}: accuracy {percent(result.accuracy.mean)} %, bias {number(result.bias.mean)}, "
        f"calibrated {number(result.calibrated_bias.mean)}."
        for result, label in zip(results, labels, strict=True)
    ]
    flawed = [
        f"{label}, which {result.failed}"
        for result, label in zip(results, labels, strict=True)
        if result.failed
    ]
    without = f", without {several(flawed)}" if flawed else ""
    return {
        "svg": Markup(inline_svg(plane(results), "plane", " ".join(places))),
        "columns": 1,
        "caption": "What was tried: high accuracy above, low bias to the left, with standard "
        f"deviations over the seeds. Dashed: the methods that no other beats in both{without}. A "
        "blurred model moves to the right once it is calibrated.",
    }


def _said(result: Result, label: str) -> str:
    groups = shown_groups(result)
    loss, accuracy = trend(groups, "loss"), trend(groups, "accuracy")
    if loss is None or accuracy is None:
        return f"{label}: too few degrees with more than five nodes for a regression line."
    return (
        f"{label}: over {len(groups)} degrees, {groups.index[0]} to {groups.index[-1]}, the "
        f"regression line of the loss has slope {number(loss.slope)} and that of the accuracy "
        f"{number(accuracy.slope)} points per neighbour."
    )


def _caution(results: list[Result], labels: list[str]) -> list[str]:
    """What to beware of in these very figures, beside the general warning of the page."""
    told = []
    able = [
        (result, label)
        for result, label in zip(results, labels, strict=True)
        if result.failure is None
    ]
    for result, label in able:
        temperatures = [judgement.temperature for judgement in result.judgements]
        mean = sum(temperatures) / len(temperatures)
        unfinished = {j.calibration for j in result.judgements} - {CalibrationOutcome.FOUND}
        if unfinished:
            told.append(f"{label}: {several(sorted(outcome.value for outcome in unfinished))}.")
        elif mean == mean:
            sure = "too unsure" if mean < 0.95 else "too sure" if mean > 1.05 else "rightly sure"
            told.append(
                f"{label} is {sure} of itself (temperature {number(mean)}): its bias is "
                f"{number(result.bias.mean)} as it stands and "
                f"{number(result.calibrated_bias.mean)} when calibrated."
            )
    plain = _least([(result.bias.mean, label) for result, label in able])
    calibrated = _least([(result.calibrated_bias.mean, label) for result, label in able])
    if plain and calibrated and plain != calibrated:
        told.append(
            f"The order changes: {plain} has the least bias as it stands, "
            f"{calibrated} when calibrated."
        )
    return told


def _least(biases: list[tuple[float, str]]) -> str | None:
    finite = [(value, label) for value, label in biases if value == value]
    return min(finite)[1] if len(finite) > 1 else None


def _settings(results: list[Result]) -> list[tuple[str, list[str]]]:
    keys = list(dict.fromkeys(key for result in results for key in result.settings))
    rows = [
        (
            printable(key.replace("_", " ")),
            [_setting(result.settings.get(key)) for result in results],
        )
        for key in keys
    ]
    rows.append(("seeds", [", ".join(map(str, result.seeds)) for result in results]))
    rows.append(("device", [printable(result.device) for result in results]))
    if not any(math.isnan(result.peak_memory_mb) for result in results):
        peaks = [f"{result.peak_memory_mb:,.0f}" for result in results]
        rows.append(("peak memory (MB)", peaks))
    for phase in dict.fromkeys(phase for result in results for phase in result.seconds):
        times = [result.seconds.get(phase) for result in results]
        rows.append(
            (f"seconds to {phase}", ["–" if time is None else f"{time:,.2f}" for time in times])
        )
    return rows


def _setting(value: object) -> str:
    if value is None:
        return "–"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else printable(value)
