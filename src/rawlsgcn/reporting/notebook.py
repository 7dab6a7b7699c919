"""What notebooks show of a result, a comparison, a tuning or an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from markupsafe import Markup

from .._core.text import printable
from ..experiments.comparison import Comparison
from ..experiments.model_search.result import AutoResult
from .audit_figures import curves
from .audit_verdict import verdict
from .figure_style import inline_svg
from .figures import by_degree, side_by_side
from .formatting import setup_text
from .page import template_environment
from .text_tables import (
    RESULT_HEADINGS,
    TRIAL_HEADINGS,
    audit_rows,
    leaderboard_rows,
    one_line,
    result_rows,
    trial_cells,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..experiments.auditing.audit_result import Audit
    from ..experiments.result import Result
    from ..experiments.tuning import Tuning


def results_html(results: Result | Sequence[Result]) -> str:
    """One row for each method, and the paper's Figure 1 or 3; of ``auto`` also how it chose."""
    if isinstance(results, AutoResult):
        # The answer beside the tuned GCN, why it was chosen, and the pool.
        headings, members = leaderboard_rows(results, narrow=True)
        return _display(
            ["member (→ chosen)", *one_line(headings)],
            [["→ " * (row["weight"] > 0) + row["member"], *cells] for row, cells in members],
            above=Markup(results_html(results.comparison())),
            sentences=list(map(printable, results.explanation)),
        )
    results = Comparison.of(results)
    lines = [f"{setup_text(results)}."]
    for name, result in zip(results.names, results, strict=True):
        failure = result.failure_of(name)
        if failure is not None:
            lines.append(failure)
        elif result.caution is not None:
            lines.append(f"{name}: {result.caution}")
    return _display(
        RESULT_HEADINGS,
        result_rows(results),
        lines=lines,
        figure=by_degree(results[0]) if len(results) == 1 else side_by_side(results),
        words="Average loss and accuracy by degree; the numbers are in result.by_degree.",
        width=max(36, min(64, 24 * len(results))),
    )


def tuning_html(tuning: Tuning) -> str:
    """A row for each trial, the chosen one marked."""
    best = None if all(trial.diverged for trial in tuning.trials) else tuning.best
    chosen = f"{setup_text(tuning.trials[:1])}. → chosen by accuracy on the validation nodes."
    return _display(
        ["", *tuning.grid, *one_line(TRIAL_HEADINGS)],
        [["→" * (trial is best), *trial_cells(trial, tuning.grid)] for trial in tuning.trials],
        lines=[chosen],
    )


def audit_html(audit: Audit) -> str:
    """The verdict, a row for each model, and the curves with their intervals."""
    said = verdict(audit)
    headings = ["model", "accuracy (%)", "worst group", "bias", "bias, shuffled"]
    headings.append("bias, calibrated")
    return _display(
        headings,
        audit_rows(audit, headings),
        headline=said.headline,
        sentences=said.lines[1:],
        lines=["audit.to_html(path) writes the whole page."],
        figure=curves(audit),
        words="Average loss and accuracy by group, with 95 % intervals; see audit.models.",
        width=44,
    )


def _display(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    figure: Figure | None = None,
    words: str = "",
    **shown: Any,
) -> str:
    """A table with names in the first column, and what is ``shown`` above and below it."""
    shown = {"above": "", "headline": "", "sentences": [], "lines": [], "width": 0} | shown
    # The ids in the pictures of different things differ.
    name = f"rawlsgcn-{crc32(repr((shown['headline'], shown['lines'], rows)).encode()):08x}"
    picture = None if figure is None else Markup(inline_svg(figure, name, words))
    template = template_environment().get_template("notebook.html.j2")
    return template.render(headings=headings, rows=rows, picture=picture, **shown)
