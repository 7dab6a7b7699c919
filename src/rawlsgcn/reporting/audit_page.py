"""The page of an audit: one HTML file that needs nothing else, and an explorer for whoever has
scripts. Without them the same pictures and tables are there, drawn when the page is made."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from markupsafe import Markup

from .._core.atomic_files import atomic_file
from . import audit_figures
from .audit_axis import doubled, group_places, log_kind
from .audit_next import next_steps
from .audit_words import headline_model, p_words, verdict
from .page import environment
from .svg import inline_svg
from .wording import number, percent, plural, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..evaluation.audit.findings import Estimate, ModelAudit, PairedBiasTest, PermutationTest
    from ..experiments.audit_result import Audit

#: Nodes in the table of a page without scripts.
STATIC_NODES = 20
SCRIPTS = ("audit_chart.js", "audit_explorer.js")


def write_page(audit: Audit, path: str | Path) -> Path:
    """Write the audit as a self-contained page, whole or not at all, and give its path back."""
    html = render(audit)
    path = Path(path)
    with atomic_file(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    return path


def render(audit: Audit) -> str:
    """The page as text."""
    script = _script()
    slope = audit.models[0].slope
    context = {
        "audit": audit,
        "graph": audit_figures.heading(audit),
        "column": printable(audit.column),
        "verdict": verdict(audit),
        "steps": next_steps(audit),
        "figures": _figures(audit),
        "doubled": "" if slope is None else doubled(audit, slope.scale),
        "numbered": log_kind(audit) is not None,
        "calibrated": any(model.scaling for model in audit.models),
        "shufflings": max(model.permutation.draws for model in audit.models),
        "headlined": headline_model(audit),
        "unlearned": [printable(model.name) for model in audit.models if not model.learned],
        "worst_nodes": _worst_nodes(audit),
        "data": _in_script(_explorer(audit)),
        "script": Markup(script),
        "script_hash": _hash(script),
    }
    return _environment().get_template("audit.html.j2").render(context)


def _environment() -> Environment:
    made = environment()
    made.filters |= {
        "plain": printable,
        "percent": percent,
        "number": number,
        "interval": _interval,
        "p": _p,
        "plural": plural,
    }
    made.tests["known"] = lambda value: value is not None and not math.isnan(value)
    return made


def _interval(estimate: Estimate, one: str) -> str:
    """``a to b``, ``over a`` or a dash."""
    show = percent if one == "percent" else number
    if math.isnan(estimate.low):
        return "–"
    if math.isnan(estimate.high):
        return f"over {show(estimate.low)}"
    return f"{show(estimate.low)} to {show(estimate.high)}"


def _script() -> str:
    """The explorer's parts in a scope of their own."""
    folder = files(__package__) / "templates"
    parts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def _p(test: PermutationTest | PairedBiasTest, which: str = "p") -> str:
    p = float(getattr(test, which))
    return "–" if math.isnan(p) else p_words(p, test.draws)


def _hash(script: str) -> str:
    """What the page's own policy lets run: this script and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _in_script(value: Any) -> Markup:
    """JSON inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _figures(audit: Audit) -> dict[str, Markup]:
    drawn: dict[str, tuple[Figure | None, str]] = {
        "curves": (audit_figures.curves(audit), " ".join(map(_said, audit.models))),
        "chance": (
            audit_figures.chance(audit),
            " ".join(
                f"{printable(model.name)}: bias {number(model.permutation.seen)}, shuffled "
                f"{number(model.permutation.mean)} on average, 95 % of them between "
                f"{number(model.permutation.low)} and {number(model.permutation.high)}."
                if model.permutation.draws
                else f"{printable(model.name)}: nothing to shuffle."
                for model in audit.models
            ),
        ),
        "calibration": (
            audit_figures.calibration(audit),
            "Confidence less accuracy of every group; the figures are in the tables of groups.",
        ),
    }
    return {
        name: Markup(inline_svg(figure, name, words))
        for name, (figure, words) in drawn.items()
        if figure is not None
    }


def _said(model: ModelAudit) -> str:
    groups = "; ".join(
        f"{printable(group.label)}: loss {number(group.loss.value)}, accuracy "
        f"{percent(group.accuracy.value)} %"
        for group in model.groups
    )
    return f"{printable(model.name)} by group. {groups}."


def _worst_nodes(audit: Audit) -> list[int]:
    """Places in the node table of the largest losses of the first model."""
    if audit.nodes is None:
        return []
    loss = audit.nodes.models[0].loss
    known = [place for place, value in enumerate(loss) if value is not None]
    return sorted(known, key=lambda place: -(loss[place] or 0))[:STATIC_NODES]


def _explorer(audit: Audit) -> dict[str, Any]:
    """What the explorer draws: groups, single values and nodes, as short as can be."""
    kind = log_kind(audit)
    nodes = audit.nodes
    return {
        "column": printable(audit.column),
        "ordered": audit.ordered,
        "log": kind,
        "smallest": audit.how.smallest_group,
        "models": [
            {
                "name": printable(model.name),
                "groups": [
                    {
                        "label": printable(group.label),
                        "low": _known(group.low),
                        "high": _known(group.high),
                        "nodes": group.nodes,
                        "share": group.share,
                        "small": group.too_small,
                        "pooled": group.pooled,
                        "at": at,
                        "logAt": log_at,
                        "loss": _ends(group.loss),
                        "accuracy": _ends(group.accuracy),
                    }
                    for group, at, log_at in zip(
                        model.groups,
                        group_places(model, audit.ordered, None),
                        group_places(model, audit.ordered, kind),
                        strict=True,
                    )
                ],
                "dots": [
                    [point.value, point.nodes, _known(point.loss.value), point.accuracy.value]
                    for point in model.curve
                    if audit.ordered and point.nodes >= audit.how.smallest_group
                ],
            }
            for model in audit.models
        ],
        "nodes": None
        if nodes is None
        else {
            "of": nodes.of,
            "id": [_name(each) for each in nodes.id],
            "value": [_name(each) for each in nodes.value],
            "degree": nodes.degree,
            "label": nodes.label,
            "models": [
                {"predicted": each.predicted, "loss": [_short(value) for value in each.loss]}
                for each in nodes.models
            ],
        },
    }


def _name(value: object) -> Any:
    """A number where a script's numbers can hold it, else text."""
    exact = isinstance(value, int | float) and abs(value) <= 2**53
    return value if exact else printable(value)


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _short(value: float | None) -> float | None:
    known = _known(value)
    return None if known is None else round(known, 5)


def _ends(estimate: Estimate) -> list[float | None]:
    return [_known(estimate.value), _known(estimate.low), _known(estimate.high)]
