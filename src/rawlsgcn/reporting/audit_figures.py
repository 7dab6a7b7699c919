"""The pictures of an audit with matplotlib: curves, chance and calibration.

Each function gives a ``matplotlib.figure.Figure``; ``figures.save`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .audit_axis import group_places, log_kind, log_marks, stretched, unstretched
from .figures import FAINT, INK, PALETTE, PAPER, plain_axes
from .wording import dataset_name, number, printable

if TYPE_CHECKING:
    from ..evaluation.audit.findings import Estimate, ModelAudit
    from ..experiments.audit_result import Audit

#: Models are told apart by colour, mark and dash, so that no one of them is needed.
MARKS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (8, 2, 2, 2)),
    (0, (4, 1, 1, 1, 1, 1)),
    (0, (1, 1)),
)
_HEADROOM = 1.2
"""Over the tallest bar there is room for a line of words."""
_LABELLED, _IN_A_ROW = 40, 70
"""Groups of text with a name on the axis at most, and characters that fit there side by side."""
FIGURES = (("loss", "average loss"), ("accuracy", "accuracy (%)"))


def curves(audit: Audit) -> Figure:
    """Loss (top) and accuracy (bottom) by group, with intervals as bands.

    Faint dots are single degrees of enough nodes, larger for more nodes; a hollow mark is a group
    too small to say anything.
    """
    figure = Figure(figsize=(7.6, 6.4), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for axes, (name, label) in zip((top, bottom), FIGURES, strict=True):
        for place, model in enumerate(audit.models):
            _curve(axes, audit, model, name, place)
        axes.set_ylabel(label)
        plain_axes(axes)
    _column_axis(bottom, audit)
    _legend(figure, top, audit)
    return figure


def chance(audit: Audit) -> Figure:
    """The bias that shuffled degrees give, and the one that was seen, of every model."""
    figure, grid = _beside(audit.models)
    for place, (axes, model) in enumerate(zip(grid, audit.models, strict=True)):
        _shuffled(axes, model, PALETTE[place % len(PALETTE)])
        axes.set_xlabel("bias")
        axes.set_title(printable(model.name), fontsize=12, color=INK, parse_math=False)
        plain_axes(axes)
        axes.margins(x=0.04)
    grid[0].set_ylabel(f"of {max(m.permutation.draws for m in audit.models):,} shufflings")
    return figure


def calibration(audit: Audit) -> Figure | None:
    """How much too sure (above 0) or too unsure the models are of each group, in points.

    None where no model gave probabilities.
    """
    known = [
        (place, model)
        for place, model in enumerate(audit.models)
        if all(group.calibration is not None for group in model.groups)
    ]
    if not known:
        return None
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color=FAINT, linewidth=1)
    for place, model in known:
        excess = [group.calibration.excess for group in model.groups if group.calibration]
        _line(axes, audit, model, excess, place)
    axes.set_ylabel("confidence less accuracy (points)")
    plain_axes(axes)
    _column_axis(axes, audit)
    _legend(figure, axes, audit)
    return figure


def heading(audit: Audit) -> str:
    """The graph's name as pictures and pages have it."""
    return dataset_name(audit.graph, audit.synthetic)


def _curve(axes: Axes, audit: Audit, model: ModelAudit, name: str, place: int) -> None:
    estimates = [getattr(group, name) for group in model.groups]
    _line(axes, audit, model, estimates, place)
    dots = [point for point in model.curve if point.nodes >= audit.how.smallest_group]
    if audit.ordered and len(dots) > len(model.groups):
        size = np.array([point.nodes for point in dots], dtype=float)
        axes.scatter(
            stretched(np.array([point.value for point in dots]), log_kind(audit)),
            [getattr(point, name).value for point in dots],
            s=6 + 60 * size / size.max(),
            color=PALETTE[place % len(PALETTE)],
            marker=MARKS[place % len(MARKS)],
            alpha=0.3,
            linewidths=0,
            label="_dots",
        )


def _shuffled(axes: Axes, model: ModelAudit, colour: str) -> None:
    test = model.permutation
    if not test.counts:
        axes.text(0.5, 0.5, "nothing to shuffle", transform=axes.transAxes, ha="center", color=INK)
        return
    axes.stairs(test.counts, test.edges, fill=True, color=colour, alpha=0.45)
    axes.axvline(test.seen, color=INK, linewidth=2)
    # The words go above the bars, to the side on which there is room.
    axes.set_ylim(0, _HEADROOM * max(test.counts))
    left, right = axes.get_xlim()
    beyond = test.seen > (left + right) / 2
    axes.annotate(
        f"seen: {number(test.seen)}",
        (test.seen, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if beyond else 5, 0),
        textcoords="offset points",
        ha="right" if beyond else "left",
        va="top",
        color=INK,
        fontsize=10,
    )


def _line(
    axes: Axes, audit: Audit, model: ModelAudit, estimates: Sequence[Estimate], place: int
) -> None:
    kind = log_kind(audit)
    colour, mark = PALETTE[place % len(PALETTE)], MARKS[place % len(MARKS)]
    x = stretched(np.array(group_places(model, audit.ordered, kind)), kind)
    y = np.array([each.value for each in estimates])
    low = np.array([each.low for each in estimates])
    high = np.array([each.high for each in estimates])
    sound = ~np.array([group.too_small for group in model.groups], dtype=bool)
    if audit.ordered:
        axes.fill_between(x, low, high, where=sound, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            x[sound],
            y[sound],
            color=colour,
            linestyle=DASHES[place % len(DASHES)],
            linewidth=2,
            label="_line",
        )
    else:
        # Text has no order: bars beside each other, not a line.
        x = x + 0.12 * (place - (len(audit.models) - 1) / 2)
        axes.vlines(x[sound], low[sound], high[sound], color=colour, linewidth=4, alpha=0.3)
    axes.plot(x[sound], y[sound], mark, color=colour, markersize=7, label=printable(model.name))
    # Groups too small to say anything have no say in the scale: beyond it they stand at its edge.
    bottom, top = axes.get_ylim()
    axes.plot(
        x[~sound],
        np.clip(y[~sound], bottom, top) if sound.any() else y[~sound],
        mark,
        color=colour,
        markersize=5,
        markerfacecolor=PAPER,
        alpha=0.6,
        label="_small",
        scaley=not sound.any(),
    )


def _column_axis(axes: Axes, audit: Audit) -> None:
    kind = log_kind(audit)
    axes.set_xlabel(printable(audit.column), parse_math=False)
    if not audit.ordered:
        labels = [_short(group.label) for group in audit.models[0].groups]
        if len(labels) > _LABELLED:
            axes.set_xlabel(f"{printable(audit.column)}, {len(labels)} groups", parse_math=False)
            axes.set_xticks([])
            return
        fits = sum(map(len, labels)) <= _IN_A_ROW
        turned: dict[str, Any] = {} if fits else {"rotation": 90, "fontsize": 8}
        axes.set_xticks(range(len(labels)), labels, parse_math=False, **turned)
        return
    if kind is not None:
        low, high = unstretched(np.array(axes.get_xlim()), kind).tolist()
        marks = log_marks(low, high, kind)
        axes.set_xticks(stretched(np.array(marks), kind), [f"{mark:,g}" for mark in marks])


def _legend(figure: Figure, axes: Axes, audit: Audit) -> None:
    if len(audit.models) > 1:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=4, frameon=False, labelcolor=INK
        )


def _beside(models: Sequence[ModelAudit]) -> tuple[Figure, list[Axes]]:
    """Small pictures, a model each, three in a row."""
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    figure = Figure(figsize=(max(5.6, 3.6 * columns), 3.0 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for spare in grid[len(models) :]:
        spare.remove()
    return figure, grid[: len(models)]


def _short(text: str, most: int = 24) -> str:
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
