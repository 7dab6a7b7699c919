"""What tables of results, tunings, audits and pools of ``auto`` show, and tables as text.

Neither rich nor matplotlib nor anything heavy is imported: results without a command use this too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._core.text import plural, printable
from .formatting import dataset_name, number, p_text, percent, setup_text, short_count, spread
from .formatting import with_interval as interval

if TYPE_CHECKING:
    from ..evaluation.audit.findings import ModelAudit
    from ..experiments.auditing.audit_result import Audit
    from ..experiments.comparison import Comparison
    from ..experiments.model_search.result import AutoResult
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

MOST_ROWS = 5
"""The most trials of a tuning, or models of an audit, that ``repr`` shows."""
#: The figures by which results are compared: heading as a terminal breaks it, property, how it is
#: shown, and the best.
COMPARED: tuple[tuple[str, str, Callable[[float], str], Callable[[list[float]], float]], ...] = (
    ("accuracy\n(%)", "accuracy", percent, max),
    ("of low\ndegrees", "low_degree_accuracy", percent, max),
    ("of high\ndegrees", "high_degree_accuracy", percent, max),
    ("\nbias", "bias", number, min),
    ("calibrated\nbias", "calibrated_bias", number, min),
)
TRIAL_HEADINGS = ("validation\naccuracy", "test\naccuracy", "\nbias", "calibrated\nbias")
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
#: What is shown of each model of an audit.
AUDITED: dict[str, Callable[[ModelAudit], str]] = {
    "model": lambda model: printable(model.name),
    "accuracy (%)": lambda model: percent(model.accuracy.value),
    "of low degrees": lambda model: (model.low and percent(100 - model.low.error.value)) or "–",
    "worst group": lambda model: (model.by_accuracy and printable(model.by_accuracy.worst)) or "–",
    "by chance": lambda model: p_text(model.permutation.p, model.permutation.draws),
    "bias": lambda model: number(model.bias),
    "bias, shuffled": lambda model: (
        f"{number(model.permutation.mean)}, {AUDITED['by chance'](model)}"
        if model.permutation.draws
        else "–"
    ),
    "bias, without noise": lambda model: number(model.net_variance.value),
    "bias, calibrated": lambda model: number(
        math.nan if model.scaling is None else model.scaling.calibrated_bias
    ),
    "loss per doubling": lambda model: (model.slope and interval(model.slope.loss)) or "–",
    "loss of worst 10 %": lambda model: next(
        (interval(worst.loss) for worst in model.worst if worst.percent == 10), "–"
    ),
}


def one_line(headings: Iterable[str]) -> list[str]:
    """The headings of a table that is not on a terminal."""
    return [each.replace("-\n", "").replace("\n", " ").strip() for each in headings]


RESULT_HEADINGS = ("method", *one_line(heading for heading, *_ in COMPARED))


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


def result_cells(result: Result, spreads: Sequence[str] = ("accuracy", "bias")) -> list[str]:
    """The figures of ``COMPARED``, those of ``spreads`` with their standard deviation."""
    figures = [(metric, getattr(result, metric), show) for _, metric, show, _ in COMPARED]
    return [
        spread(figure, show) if metric in spreads else show(figure.mean)
        for metric, figure, show in figures
    ]


def result_rows(results: Comparison) -> list[list[str]]:
    """A row for each method, with ``RESULT_HEADINGS``."""
    return [
        [f"{name} ({result.failed})" if result.failed else name, *result_cells(result)]
        for name, result in zip(results.names, results, strict=True)
    ]


def trial_cells(trial: Result, grid: Iterable[str]) -> list[str]:
    """The values of a trial of a tuning, and its figures, with ``TRIAL_HEADINGS``."""
    accuracy, _, _, *biases = result_cells(trial)
    values = [printable(trial.settings[name]) for name in grid]
    return [*values, percent(trial.validation_accuracy.mean), accuracy, *biases]


def leaderboard_rows(
    result: AutoResult, *, narrow: bool = False, exact: bool = True
) -> tuple[list[str], list[tuple[dict[str, Any], list[str]]]]:
    """The headings of the pool's figures, and each member with them, with all columns or some."""
    columns = [column for column in LEADERBOARD if not (narrow and column[3])]
    rows: list[Any] = result.leaderboard.to_dict("records")
    for row in rows:
        row["member"] = printable(row["member"])
    cells = [
        [
            f"{row[name]:,}" if exact and name == "parameters" else show(row[name])
            for _, name, show, _ in columns
        ]
        for row in rows
    ]
    return [heading for heading, *_ in columns], list(zip(rows, cells, strict=True))


def audit_rows(audit: Audit, headings: Iterable[str]) -> list[list[str]]:
    """A row for each model, with those of ``AUDITED`` that the headings name."""
    shown = [AUDITED[heading] for heading in headings]
    return [[show(model) for show in shown] for model in audit.models]


def results_text(results: Sequence[Result]) -> str:
    """A line on the graph and the runs, and a row for each method."""
    from ..experiments.comparison import Comparison

    if not results:
        return "Comparison of no results"
    rows = result_rows(Comparison(results))
    return f"{setup_text(results)}\n{text_table(RESULT_HEADINGS, rows)}"


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
    graph = dataset_name(first.dataset, first.synthetic)
    count = plural(len(tuning.trials), "combination")
    return _short(
        f"{first.title} on {graph}: {count} of {plural(len(first.seeds), 'seed')}, best first",
        (*tuning.grid, *one_line(TRIAL_HEADINGS)),
        [trial_cells(trial, tuning.grid) for trial in ordered],
        "tuning.trials",
    )


def audit_text(audit: Audit) -> str:
    """A line on the evaluated nodes, and a row for each model."""
    graph = dataset_name(audit.graph, audit.synthetic)
    head = f"Audit by {printable(audit.column)} of {plural(audit.how.nodes, 'node')} of {graph}"
    headings = ("model", "accuracy (%)", "of low degrees", "worst group", "bias", "by chance")
    return _short(head, headings, audit_rows(audit, headings), "audit.models")


def _short(head: str, headings: Sequence[str], rows: Sequence[Sequence[str]], where: str) -> str:
    """``head`` above the first rows, and below them where the others are."""
    left = f"\n… {len(rows) - MOST_ROWS} more in {where}" if len(rows) > MOST_ROWS else ""
    return f"{head}\n{text_table(headings, rows[:MOST_ROWS])}{left}"


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right."""
    columns = []
    for place, cells in enumerate(zip(headings, *rows, strict=True)):
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if place else cell.ljust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))
