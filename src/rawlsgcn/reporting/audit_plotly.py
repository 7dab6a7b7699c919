"""The pictures of an audit with plotly, for notebooks: the same as ``audit_figures``, alive.

Needs the optional package plotly: ``pip install 'rawlsgcn[plotly]'``.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..errors import missing_extra
from .audit_axis import group_places, log_kind, log_marks, stretched
from .audit_figures import FIGURES, heading
from .figures import FAINT, PALETTE
from .wording import number, percent, printable

if TYPE_CHECKING:
    from ..audit_result import Audit
    from ..evaluation.audit.parts import ModelAudit

_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_DASHES = ("solid", "dash", "dot", "longdashdot", "dashdot", "longdash")


def curves(audit: Audit) -> Any:
    """Loss and accuracy by group with their intervals; a button switches between the two."""
    go = _plotly()
    figure = go.Figure()
    for name, _ in FIGURES:
        for place, model in enumerate(audit.models):
            figure.add_trace(_curve(go, audit, model, name, place))
    models = len(audit.models)
    buttons = [
        {
            "label": name,
            "method": "update",
            "args": [
                {"visible": [row == shown for row in range(len(FIGURES)) for _ in range(models)]},
                {"yaxis.title.text": label},
            ],
        }
        for shown, (name, label) in enumerate(FIGURES)
    ]
    figure.update_layout(
        title=f"{_safe(heading(audit))} by {_safe(audit.column)}",
        xaxis=_axis(audit),
        yaxis_title=FIGURES[0][1],
        updatemenus=[
            {"type": "buttons", "direction": "right", "x": 1, "y": 1.15, "buttons": buttons}
        ],
    )
    return figure


def chance(audit: Audit) -> Any:
    """The bias that shuffled degrees give (bars) and the one seen (dashed), of every model."""
    go = _plotly()
    figure = go.Figure()
    for place, model in enumerate(audit.models):
        test, colour = model.permutation, PALETTE[place % len(PALETTE)]
        middles = [(low + high) / 2 for low, high in pairwise(test.edges)]
        figure.add_trace(
            go.Bar(
                x=middles, y=test.counts, name=_safe(model.name), marker_color=colour, opacity=0.5
            )
        )
        figure.add_vline(x=test.seen, line_color=colour, line_dash="dash")
    figure.update_layout(barmode="overlay", bargap=0, xaxis_title="bias", yaxis_title="shufflings")
    return figure


def lorenz(audit: Audit) -> Any:
    """Lorenz curves of accuracy; the diagonal is all groups alike."""
    go = _plotly()
    figure = go.Figure(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", name="all alike", line={"color": FAINT})
    )
    for place, model in enumerate(audit.models):
        figure.add_trace(
            go.Scatter(
                x=model.inequality.population,
                y=model.inequality.accuracy,
                name=f"{_safe(model.name)}: Gini {number(model.inequality.gini.value)}",
                line={
                    "color": PALETTE[place % len(PALETTE)],
                    "dash": _DASHES[place % len(_DASHES)],
                },
            )
        )
    figure.update_layout(
        xaxis_title="worst-off share of the nodes", yaxis_title="their share of the right answers"
    )
    return figure


def _curve(go: Any, audit: Audit, model: ModelAudit, name: str, place: int) -> Any:
    kind, colour = log_kind(audit), PALETTE[place % len(PALETTE)]
    estimates = [getattr(group, name) for group in model.groups]
    told = [
        f"{_safe(group.label)}: {group.nodes:,} nodes<br>loss {number(group.loss.value)}, "
        f"accuracy {percent(group.accuracy.value)} %"
        + ("<br>too few to say anything" if group.too_small else "")
        for group in model.groups
    ]
    return go.Scatter(
        x=_places(audit, model, kind),
        y=[each.value for each in estimates],
        error_y={
            "symmetric": False,
            "array": [each.high - each.value for each in estimates],
            "arrayminus": [each.value - each.low for each in estimates],
        },
        mode="lines+markers" if audit.ordered else "markers",
        name=_safe(model.name),
        legendgroup=_safe(model.name),
        text=told,
        hoverinfo="text+name",
        marker={"color": colour, "symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 9},
        line={"color": colour, "dash": _DASHES[place % len(_DASHES)]},
        visible=name == FIGURES[0][0],
    )


def _places(audit: Audit, model: ModelAudit, kind: str | None) -> list[float]:
    """Where the groups stand; the axis is stretched here, for plotly's has no place for 0."""
    return [float(stretched(each, kind)) for each in group_places(model, audit.ordered, kind)]


def _axis(audit: Audit) -> dict[str, Any]:
    title, kind = _safe(audit.column), log_kind(audit)
    first = audit.models[0]
    if not audit.ordered:
        labels = [_safe(group.label) for group in first.groups]
        return {"title": title, "tickvals": list(range(len(labels))), "ticktext": labels}
    if kind is None:
        return {"title": title}
    marks = log_marks(
        min(group.low for group in first.groups), max(group.high for group in first.groups), kind
    )
    places = [float(stretched(mark, kind)) for mark in marks]
    return {"title": title, "tickvals": places, "ticktext": [f"{mark:,g}" for mark in marks]}


def _safe(text: object) -> str:
    """plotly reads some markup in its texts: what the user named is shown as it is."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plotly() -> Any:
    try:
        return import_module("plotly.graph_objects")
    except ImportError:
        raise missing_extra("a plotly figure", "plotly") from None
