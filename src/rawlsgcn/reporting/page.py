"""The report: one HTML page for trained results and for an audit of anybody's predictions.

The page needs no other file. Its script adds an explorer; without scripts the same pictures and
tables are on the page.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .._core import __version__
from .._core.atomic_files import atomic_file, check_page
from .._core.text import plural, printable
from ..experiments.auditing.audit_result import Audit
from ..experiments.comparison import Comparison
from ..experiments.model_search.result import AutoResult
from . import audit_figures
from .audit_verdict import DIVERGED, doubled, headline_model, verdict
from .explorer import explorer_data, explorer_script
from .figure_style import inline_svg
from .formatting import dataset_name, number, p_text, percent, seeds_text, setup_text
from .model_choice_section import model_choice_sections
from .next_steps import next_steps
from .training_section import training_figures, training_section

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, PairedBiasTest, PermutationTest
    from ..experiments.result import Result
    from .figure_style import Figure

#: Nodes in the table of a page without scripts.
STATIC_NODES = 20


def report(
    subject: Audit | Result | Sequence[Result], path: str | Path, *, command: str | None = None
) -> Path:
    """Write the report as one self-contained HTML page.

    Of trained results the run with the highest validation accuracy of each method is audited, and
    a section on training shows all runs. Of a result of :func:`rawlsgcn.auto` a section shows how
    it was chosen, and it is compared with its tuned GCN.

    Args:
        subject: An audit, a result, or several results on the same graph and evaluated nodes.
        path: The file, which ends in .html; it is written completely or not at all.
        command: The command line that made the results, to be shown on the page.

    Returns:
        The path of the file.

    Raises:
        RawlsError: The results do not belong together, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> import rawlsgcn as rg
        >>> result = rg.fit(rg.synthetic(300), "gcn", seeds=1, epochs=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rg.report(result, f"{folder}/report.html").name
        'report.html'
    """
    path = Path(path)
    check_page(path)
    html = render(subject, command=command)
    with atomic_file(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return path


def render(subject: Audit | Result | Sequence[Result], *, command: str | None = None) -> str:
    """The page of :func:`report` as text."""
    audit: Audit | None
    if isinstance(subject, Audit):
        audit, results, command = subject, subject.results, command or subject.how.command
    else:
        chosen = Comparison.of(subject)
        if isinstance(subject, AutoResult):
            chosen = subject.comparison()
        sound = any(len(result.diverged) < len(result.seeds) for result in chosen)
        audit = chosen.audit() if sound else None
        results = dict(zip(chosen.names, chosen, strict=True))
    failures = {name: result.failure_of(name) for name, result in results.items()}
    notes = [] if audit is None else audit.notes
    for result in results.values():
        notes = notes + [note for note in result.notes if note != result.failure]
    choices, drawn = model_choice_sections(results, audit)
    context: dict[str, Any] = {
        "audit": audit,
        "version": __version__,
        "choices": choices,
        "training": training_section(results) if results else None,
        "failed": {name: result.failed for name, result in results.items()},
        "notes": list(dict.fromkeys(printable(note) for note in notes)),
        "command": None if command is None else printable(command),
        "script_hash": "none",
    }
    figures = (training_figures(results) if results else {}) | drawn
    if audit is None:
        first = next(iter(results.values()))
        context |= {
            "graph": dataset_name(first.dataset, first.synthetic),
            "synthetic": first.synthetic,
            "setup": f"{setup_text(list(results.values()))}.",
            "verdict": replace(DIVERGED, sentences=[*map(str, failures.values())]),
        }
    else:
        figures |= _audit_figures(audit)
        context |= _audit_context(audit)
    context["figures"] = {
        name: Markup(inline_svg(figure, name, words)) for name, (figure, words) in figures.items()
    }
    environment = template_environment()
    environment.filters |= _FILTERS
    environment.tests["known"] = lambda value: value is not None and not math.isnan(value)
    return environment.get_template("page.html.j2").render(context)


def _audit_context(audit: Audit) -> dict[str, Any]:
    how, slope, script = audit.how, audit.models[0].slope, explorer_script()
    # By this hash the page's policy allows the script and no other.
    digest = hashlib.sha256(script.encode()).digest()
    seeds = dict.fromkeys(seeds_text(result) for result in audit.results.values())
    trained = f", trained with {' or '.join(seeds)}" if seeds else ""
    return {
        "graph": dataset_name(audit.graph, audit.synthetic),
        "synthetic": audit.synthetic,
        "setup": f"{how.nodes:,} of {plural(how.graph_nodes, 'node')} evaluated "
        f"({printable(how.evaluated)}), grouped by {printable(audit.column)}; "
        f"{plural(len(audit.models), 'model')}{trained}.",
        "column": printable(audit.column),
        "verdict": verdict(audit),
        "steps": next_steps(audit),
        "doubled": "" if slope is None else doubled(audit, slope.scale),
        "numbered": audit_figures.log_kind(audit) is not None,
        "calibrated": any(model.scaling for model in audit.models),
        "shufflings": max(model.permutation.draws for model in audit.models),
        "headlined": headline_model(audit),
        "unlearned": [printable(model.name) for model in audit.models if not model.learned],
        "worst_nodes": _worst_nodes(audit),
        "data": explorer_data(audit),
        "script": Markup(script),
        "script_hash": f"sha256-{base64.b64encode(digest).decode()}",
    }


def template_environment(*packages: str) -> Environment:
    """The templates of these packages and of this one; all that is inserted in them is escaped."""
    return Environment(
        loader=ChoiceLoader([*map(PackageLoader, packages), PackageLoader("rawlsgcn.reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _interval(estimate: Estimate, unit: str) -> str:
    """``a to b``, ``over a`` or a dash."""
    show = percent if unit == "percent" else number
    if math.isnan(estimate.low):
        return "–"
    if math.isnan(estimate.high):
        return f"over {show(estimate.low)}"
    return f"{show(estimate.low)} to {show(estimate.high)}"


def _p(test: PermutationTest | PairedBiasTest) -> str:
    return "–" if math.isnan(test.p) else p_text(test.p, test.draws)


#: A number and its per cent sign are kept on one line.
_FILTERS: dict[str, Callable[..., str]] = {
    "unbroken": lambda text: printable(text).replace(" %", "\N{NO-BREAK SPACE}%"),
    "grouped": lambda count: f"{count:,}",
    "plain": printable,
    "percent": percent,
    "number": number,
    "interval": _interval,
    "p": _p,
    "plural": plural,
}


def _audit_figures(audit: Audit) -> dict[str, tuple[Figure, str]]:
    """The figures of the audit with the words of a screen reader."""
    curves, chances = [], []
    for model in audit.models:
        name, test = printable(model.name), model.permutation
        groups = "; ".join(
            f"{printable(group.label)}: loss {number(group.loss.value)}, accuracy "
            f"{percent(group.accuracy.value)} %"
            for group in model.groups
        )
        curves.append(f"{name} by group. {groups}.")
        shuffled = (
            f"bias {number(test.seen)}, shuffled {number(test.mean)} on average, 95 % of them "
            f"between {number(test.low)} and {number(test.high)}."
        )
        chances.append(f"{name}: {shuffled if test.draws else 'nothing to shuffle.'}")
    drawn = {
        "curves": (audit_figures.curves(audit), " ".join(curves)),
        "chance": (audit_figures.chance(audit), " ".join(chances)),
    }
    calibration = audit_figures.calibration(audit)
    if calibration is not None:
        words = "Confidence less accuracy of each group; the numbers are in the tables of groups."
        drawn["calibration"] = (calibration, words)
    return drawn


def _worst_nodes(audit: Audit) -> list[int]:
    """Positions in the node table of the largest losses of the first model."""
    if audit.nodes is None:
        return []
    loss = pd.Series(audit.nodes.models[0].loss, dtype=float).dropna()
    return loss.sort_values(ascending=False, kind="stable").index[:STATIC_NODES].tolist()
