"""The explorer of the report: its script, and what the script draws."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from .._core.serialization import jsonable
from .._core.text import printable
from .audit_figures import group_positions, log_kind

if TYPE_CHECKING:
    from ..evaluation.audit.findings import ModelAudit
    from ..experiments.auditing.audit_result import Audit, ShownNodes

SCRIPTS = ("chart.js", "explorer.js")


def explorer_script() -> str:
    """The explorer's files in a scope of their own."""
    folder = files(__package__) / "templates"
    texts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(texts) + "})();\n"


def explorer_data(audit: Audit) -> Markup:
    """What the explorer draws, groups, single values and nodes, as JSON for a script element.

    Nothing in it can end the element or begin another.
    """
    data = {
        "column": printable(audit.column),
        "ordered": audit.ordered,
        "log": log_kind(audit),
        "smallest": audit.how.smallest_group,
        "models": [_model_data(audit, model) for model in audit.models],
        "nodes": None if audit.nodes is None else _node_data(audit.nodes),
    }
    text = json.dumps(jsonable(data), separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _node_data(nodes: ShownNodes) -> dict[str, Any]:
    models = []
    for model in nodes.models:
        losses = [None if loss is None else round(loss, 5) for loss in model.loss]
        models.append({"predicted": model.predicted, "loss": losses})
    return {
        "of": nodes.of,
        "id": [_script_value(each) for each in nodes.id],
        "value": [_script_value(each) for each in nodes.value],
        "degree": nodes.degree,
        "label": nodes.label,
        "classes": nodes.classes and [printable(name) for name in nodes.classes],
        "models": models,
    }


def _model_data(audit: Audit, model: ModelAudit) -> dict[str, Any]:
    places = [group_positions(model, audit.ordered, kind) for kind in (None, log_kind(audit))]
    return {
        "name": printable(model.name),
        "groups": [
            {
                "label": printable(group.label),
                "low": group.low,
                "high": group.high,
                "nodes": group.nodes,
                "share": group.share,
                "small": group.too_small,
                "pooled": group.pooled,
                "at": at,
                "logAt": log_at,
                "loss": [group.loss.value, group.loss.low, group.loss.high],
                "accuracy": [group.accuracy.value, group.accuracy.low, group.accuracy.high],
            }
            for group, at, log_at in zip(model.groups, *places, strict=True)
        ],
        "dots": [
            [point.value, point.nodes, point.loss.value, point.accuracy.value]
            for point in model.curve
            if audit.ordered and point.nodes >= audit.how.smallest_group
        ],
    }


def _script_value(value: object) -> Any:
    """A number where a script's numbers can represent it, else text."""
    exact = isinstance(value, int | float) and abs(value) <= 2**53
    return value if exact else printable(value)
