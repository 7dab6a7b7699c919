"""What ``repr`` and ``str`` show of a result, a comparison, a tuning or an audit, as text.

No heavy import, and neither rich nor matplotlib: these objects are also used where no command is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .._core.text import plural, printable
from .formatting import dataset_name, number, p_text, percent, setup_text, spread
from .table_columns import result_cells, trial_cells

if TYPE_CHECKING:
    from ..experiments.auditing.audit_result import Audit
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning

MOST_ROWS = 5
"""The most trials of a tuning, or models of an audit, that are shown."""
RESULT_HEADINGS = ("accuracy (%)", "of low degrees", "of high", "bias", "calibrated")


def results_text(results: Sequence[Result]) -> str:
    """A line on the graph and the runs, and a row for each method."""
    from ..experiments.comparison import Comparison

    results = Comparison(results)
    if not results:
        return "Comparison of no results"
    rows = [
        (f"{name} ({result.failed})" if result.failed else name, *result_cells(result))
        for name, result in zip(results.names, results, strict=True)
    ]
    return f"{setup_text(results)}\n{text_table(('method', *RESULT_HEADINGS), rows)}"


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
    headings = (*tuning.grid, "validation (%)", "test (%)", "bias", "calibrated")
    head = f"{first.title} on {graph}: {count} of {plural(len(first.seeds), 'seed')}, best first"
    return f"{head}\n{text_table(headings, rows)}{_left_out(len(ordered), 'tuning.trials')}"


def audit_text(audit: Audit) -> str:
    """A line on the evaluated nodes, and a row for each model."""
    rows = [
        (
            printable(model.name),
            percent(model.accuracy.value),
            "–" if model.low is None else percent(100 - model.low.error.value),
            "–" if model.by_accuracy is None else printable(model.by_accuracy.worst),
            number(model.bias),
            p_text(model.permutation.p, model.permutation.draws),
        )
        for model in audit.models[:MOST_ROWS]
    ]
    graph = dataset_name(audit.graph, audit.synthetic)
    head = f"Audit by {printable(audit.column)} of {plural(audit.how.nodes, 'node')} of {graph}"
    headings = ("model", "accuracy (%)", "of low degrees", "worst group", "bias", "by chance")
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
