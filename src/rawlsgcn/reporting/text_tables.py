"""The figures in tables of results, tunings, audits and pools of ``auto``; tables as text.

No heavy import, and neither rich nor matplotlib: these objects are also used where no command is,
and the command line's light commands use this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._core.text import plural, printable
from .formatting import dataset_name, number, p_text, percent, setup_text, short_count, spread

if TYPE_CHECKING:
    from ..evaluation.audit.findings import ModelAudit
    from ..experiments.auditing.audit_result import Audit
    from ..experiments.comparison import Comparison
    from ..experiments.model_search.result import AutoResult
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

MOST_ROWS = 5
"""The most trials of a tuning, or models of an audit, that ``repr`` shows."""
RESULT_HEADINGS = ("method", "accuracy (%)", "of low degrees", "of high", "bias", "calibrated")
TRIAL_HEADINGS = ("validation (%)", "test (%)", "bias", "calibrated")
#: The figures by which results are compared: heading, property, how it is shown, and the best.
COMPARED: tuple[tuple[str, str, Callable[[float], str], Callable[[list[float]], float]], ...] = (
    ("accuracy (%)", "accuracy", percent, max),
    ("of low degrees", "low_degree_accuracy", percent, max),
    ("of high degrees", "high_degree_accuracy", percent, max),
    ("bias", "bias", number, min),
    ("calibrated bias", "calibrated_bias", number, min),
)


def best_figures(results: Sequence[Result]) -> list[tuple[bool, ...]]:
    """Which figures of each result, in the order of ``COMPARED``, are shown as the best.

    A method that has not learned is not compared. Values that look the same are equally good; where
    all do, none is the best.
    """
    columns = []
    for _, metric, show, choose in COMPARED:
        means = [math.nan if each.failure else getattr(each, metric).mean for each in results]
        finite = [mean for mean in means if mean == mean]
        differ = len({show(mean) for mean in finite}) > 1
        best = show(choose(finite)) if differ else None
        columns.append([mean == mean and show(mean) == best for mean in means])
    return list(zip(*columns, strict=True))


def result_cells(result: Result) -> tuple[str, ...]:
    """Accuracy, that of low and of high degrees, bias and calibrated bias, as tables show them."""
    return (
        spread(result.accuracy, percent),
        percent(result.low_degree_accuracy.mean),
        percent(result.high_degree_accuracy.mean),
        spread(result.bias, number),
        number(result.calibrated_bias.mean),
    )


def trial_cells(trial: Result, grid: Iterable[str]) -> tuple[str, ...]:
    """The values of a trial of a tuning, validation and test accuracy, bias and calibrated bias."""
    return (
        *(printable(trial.settings[name]) for name in grid),
        percent(trial.validation_accuracy.mean),
        spread(trial.accuracy, percent),
        spread(trial.bias, number),
        number(trial.calibrated_bias.mean),
    )


#: Heading, column of the leaderboard, how it is shown, and whether it is omitted in few columns.
LEADERBOARD: tuple[tuple[str, str, Callable[[float], str], bool], ...] = (
    ("validation\nloss", "validation_loss", number, False),
    ("validation\naccuracy", "validation_accuracy", percent, True),
    ("accuracy\n(%)", "accuracy", percent, False),
    ("of low\ndegrees", "low_degree_accuracy", percent, False),
    ("calibrated\nbias", "calibrated_bias", number, False),
    ("para-\nmeters", "parameters", lambda count: short_count(int(count)), False),
    ("\nseconds", "seconds", lambda seconds: f"{seconds:,.1f}", True),
)


def leaderboard_rows(result: AutoResult, whole: bool) -> tuple[list[str], list[dict[str, Any]]]:
    """The headings in one line and the members with their ``cells``, with all columns or some."""
    columns = [column for column in LEADERBOARD if whole or not column[3]]
    headings = [heading.replace("-\n", "").replace("\n", " ").strip() for heading, *_ in columns]
    rows: list[Any] = result.leaderboard.to_dict("records")
    for row in rows:
        row["member"] = printable(row["member"])
        row["cells"] = [
            f"{row[name]:,}" if name == "parameters" else show(row[name])
            for _, name, show, _ in columns
        ]
    return headings, rows


AUDITED: dict[str, Callable[[ModelAudit], str]] = {
    "model": lambda model: printable(model.name),
    "accuracy (%)": lambda model: percent(model.accuracy.value),
    "of low degrees": lambda model: (
        "–" if model.low is None else percent(100 - model.low.error.value)
    ),
    "worst group": lambda model: (
        "–" if model.by_accuracy is None else printable(model.by_accuracy.worst)
    ),
    "bias": lambda model: number(model.bias),
    "by chance": lambda model: p_text(model.permutation.p, model.permutation.draws),
    "shuffled": lambda model: f"{number(model.permutation.mean)}, {AUDITED['by chance'](model)}",
    "calibrated": lambda model: (
        "–" if model.scaling is None else number(model.scaling.calibrated_bias)
    ),
}
"""What is shown of each model of an audit, by the headings."""


def audit_rows(audit: Audit, headings: Iterable[str]) -> list[tuple[str, ...]]:
    """A row for each model, with those of ``AUDITED`` that the headings name."""
    shown = [AUDITED[heading] for heading in headings]
    return [tuple(show(model) for show in shown) for model in audit.models]


def result_rows(results: Comparison) -> list[tuple[str, ...]]:
    """A row for each method, with ``RESULT_HEADINGS``."""
    return [
        (f"{name} ({result.failed})" if result.failed else name, *result_cells(result))
        for name, result in zip(results.names, results, strict=True)
    ]


def results_text(results: Sequence[Result]) -> str:
    """A line on the graph and the runs, and a row for each method."""
    from ..experiments.comparison import Comparison

    results = Comparison(results)
    if not results:
        return "Comparison of no results"
    return f"{setup_text(results)}\n{text_table(RESULT_HEADINGS, result_rows(results))}"


def result_line(result: Result) -> str:
    """The means of a result in one line, with its worst-off degree or why nothing was learned."""
    end = f"   ({result.failed})" if result.failed else ""
    if not result.failed:
        worst = result.worst_off(1)
        if len(worst):
            accuracy = percent(worst["accuracy"].iloc[0])
            end = f"   worst-off degree {worst.index[0]}: {accuracy}"
        if result.caution is not None:
            end += "   (under-confident: read the calibrated bias)"
    return (
        f"{result.title} on {result.dataset}: "
        f"accuracy {spread(result.accuracy, percent)}   "
        f"bias {spread(result.bias, number)} "
        f"(calibrated {number(result.calibrated_bias.mean)})   "
        f"low-degree accuracy {percent(result.low_degree_accuracy.mean)}{end}"
    )


def tuning_text(tuning: Tuning) -> str:
    """A line on the search, and a row for each of the best trials by validation accuracy."""
    first = tuning.trials[0]
    ordered = sorted(
        tuning.trials,
        key=lambda trial: (bool(trial.diverged), -trial.validation_accuracy.mean),
    )
    rows = [trial_cells(trial, tuning.grid) for trial in ordered[:MOST_ROWS]]
    graph = dataset_name(first.dataset, first.synthetic)
    count = plural(len(tuning.trials), "combination")
    headings = (*tuning.grid, *TRIAL_HEADINGS)
    head = f"{first.title} on {graph}: {count} of {plural(len(first.seeds), 'seed')}, best first"
    return f"{head}\n{text_table(headings, rows)}{_left_out(len(ordered), 'tuning.trials')}"


def audit_text(audit: Audit) -> str:
    """A line on the evaluated nodes, and a row for each model."""
    graph = dataset_name(audit.graph, audit.synthetic)
    head = f"Audit by {printable(audit.column)} of {plural(audit.how.nodes, 'node')} of {graph}"
    headings = ("model", "accuracy (%)", "of low degrees", "worst group", "bias", "by chance")
    rows = audit_rows(audit, headings)[:MOST_ROWS]
    return f"{head}\n{text_table(headings, rows)}{_left_out(len(audit.models), 'audit.models')}"


def _left_out(count: int, where: str) -> str:
    return f"\n… {count - MOST_ROWS} more in {where}" if count > MOST_ROWS else ""


def text_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right."""
    table = [tuple(headings), *map(tuple, rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(headings))]
    lines = (
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )
    return "\n".join(lines)
