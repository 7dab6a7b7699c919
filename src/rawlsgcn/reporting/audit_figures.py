"""The figures of an audit: loss and accuracy by group, the bias against chance, and calibration.

Each function returns a ``matplotlib.figure.Figure``; ``figures.save`` writes it to a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .._core.errors import RawlsError
from .._core.text import printable
from ..evaluation.audit.intervals import log_scale
from .figure_style import FAINT, INK, PAPER, Figure, color, cut_bars, legend, plain_axes
from .formatting import number

if TYPE_CHECKING:
    from ..evaluation.audit.findings import CurvePoint, Estimate, GroupAudit, ModelAudit
    from ..experiments.auditing.audit_result import Audit

__all__ = ["calibration", "chance", "curves"]

Floats = npt.NDArray[np.float64]
#: Models differ in color, marker and dash, so that none of the three alone is needed.
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = (None, (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 1, 1, 1, 1, 1), (1, 1))


def _log(values: Any) -> Any:
    # matplotlib also asks for positions beyond the values, of which there is no logarithm.
    return np.log(np.maximum(values, 1e-300))


#: The functions to an axis and back, by the kinds of :func:`log_kind`.
SCALES: dict[str | None, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    None: (np.positive, np.positive),
    "one more": (lambda values: _log(np.add(values, 1)), lambda places: np.exp(places) - 1),
    "plain": (_log, np.exp),
}
_HEADROOM = 1.2
"""Room for a line of text above the tallest bar."""
_MOST_LABELS, _LINE_LENGTH = 40, 70
"""Groups of text with a name on the axis at most, and characters that fit there in one line."""


def curves(audit: Audit) -> Figure:
    """Draw loss (top) and accuracy (bottom) by group, with 95 % intervals as bands.

    Faint dots are single degrees with enough nodes, larger for more nodes; a hollow marker is a
    group with too few nodes for an interval; an arrow marks an interval that goes on above.

    Args:
        audit: The audit to draw.

    Returns:
        The matplotlib figure.

    Raises:
        RawlsError: This is no audit.
    """
    _require_audit(audit)
    figure = Figure(figsize=(7.6, 6.4), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    _draw(top, audit, "loss", "average loss")
    _draw(bottom, audit, "accuracy", "accuracy (%)")
    _label_column(bottom, audit)
    if len(audit.models) > 1:
        legend(figure, top, "upper")
    return figure


def chance(audit: Audit) -> Figure:
    """Draw the biases with shuffled degrees, and the observed bias, of each model.

    Args:
        audit: The audit to draw.

    Returns:
        The matplotlib figure, one axes for each model.

    Raises:
        RawlsError: This is no audit.
    """
    _require_audit(audit)
    columns = min(3, len(audit.models))
    rows = -(-len(audit.models) // columns)
    figure = Figure(figsize=(max(5.6, 3.6 * columns), 3.0 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in grid[len(audit.models) :]:
        unused.remove()
    for series, (axes, model) in enumerate(zip(grid, audit.models, strict=False)):
        _draw_shuffled(axes, model, series)
        axes.set_xlabel("bias")
        axes.set_title(printable(model.name), fontsize=12, color=INK, parse_math=False)
        plain_axes(axes)
        axes.margins(x=0.04)
    grid[0].set_ylabel(f"of {max(m.permutation.draws for m in audit.models):,} shufflings")
    return figure


def calibration(audit: Audit) -> Figure | None:
    """Draw the mean confidence less the accuracy of each group, in points.

    Args:
        audit: The audit to draw.

    Returns:
        The matplotlib figure, or None where no model has probabilities.

    Raises:
        RawlsError: This is no audit.
    """
    _require_audit(audit)
    if all(model.scaling is None for model in audit.models):
        return None
    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color=FAINT, linewidth=1)
    _draw(axes, audit, "calibration", "confidence less accuracy (points)")
    _label_column(axes, audit)
    if len(audit.models) > 1:
        legend(figure, axes, "upper")
    return figure


def _require_audit(audit: object) -> None:
    from ..experiments.auditing.audit_result import Audit

    if not isinstance(audit, Audit):
        raise RawlsError(
            f"this figure is drawn of an audit, not of {type(audit).__name__}: give "
            "result.audit() or rg.audit(graph, predictions)"
        )


def log_kind(audit: Audit) -> str | None:
    """How the axis can be logarithmic, if it can: see :func:`log_scale`."""
    if not audit.ordered:
        return None
    return log_scale(np.array([point.value for point in audit.models[0].curve]))


def group_positions(model: ModelAudit, ordered: bool, kind: str | None) -> list[float]:
    """The value at which each group is drawn: the mean of its nodes on an axis of this kind (not
    the middle of a range such as 43 to 997), or its index for text."""
    if not ordered:
        return list(map(float, range(len(model.groups))))
    forward, backward = SCALES[kind]
    positions = []
    for group in model.groups:
        inside = [each for each in model.curve if group.low <= each.value <= group.high]
        values = forward(np.array([each.value for each in inside], dtype=float))
        mean = np.average(values, weights=[each.nodes for each in inside])
        positions.append(float(backward(mean)))
    return positions


def log_ticks(low: float, high: float, kind: str) -> list[float]:
    """1, 2, 5, 10, … between the ends (and 0 where it has a position), at most twelve of them."""
    decades = range(math.floor(math.log10(max(low, 1e-300))) if kind == "plain" else 0, 16)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    if kind == "one more" and low <= 0:
        inside.insert(0, 0.0)
    if len(inside) > 12:
        inside = [tick for tick in inside if tick == 0 or math.log10(tick) % 1 < 1e-9]
    return inside


def _draw_shuffled(axes: Axes, model: ModelAudit, series: int) -> None:
    test = model.permutation
    if not test.counts:
        axes.text(0.5, 0.5, "nothing to shuffle", transform=axes.transAxes, ha="center", color=INK)
        return
    axes.stairs(test.counts, test.edges, fill=True, color=color(series), alpha=0.45)
    axes.axvline(test.seen, color=INK, linewidth=2)
    # The text is above the bars, on the side on which there is room.
    axes.set_ylim(0, _HEADROOM * max(test.counts))
    left, right = axes.get_xlim()
    in_right_half = test.seen > (left + right) / 2
    axes.annotate(
        f"observed: {number(test.seen)}",
        (test.seen, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if in_right_half else 5, 0),
        textcoords="offset points",
        ha="right" if in_right_half else "left",
        va="top",
        color=INK,
        fontsize=10,
    )


def _draw(axes: Axes, audit: Audit, metric: str, label: str) -> None:
    """Draw the loss, the accuracy or the calibration of the groups of all models."""
    kind, bars, small_groups = log_kind(audit), [], []
    for series, model in enumerate(audit.models):
        estimates = [each for group in model.groups if (each := _estimate(group, metric))]
        if not estimates:
            continue
        ink, marker = color(series), MARKERS[series % len(MARKERS)]
        x = np.array(group_positions(model, audit.ordered, kind))
        if not audit.ordered:  # beside the other models
            x += 0.12 * (series - (len(audit.models) - 1) / 2)
        y, low, high = np.array([(each.value, each.low, each.high) for each in estimates]).T
        large = np.array([not group.too_small for group in model.groups])
        if audit.ordered:
            dash: Any = (0, DASHES[series % len(DASHES)])
            axes.fill_between(x, low, high, where=large, color=ink, alpha=0.16, linewidth=0)
            axes.plot(x[large], y[large], color=ink, linestyle=dash, linewidth=2, label="_line")
        else:  # text has no order: bars next to each other, not a line
            axes.vlines(x[large], low[large], high[large], color=ink, linewidth=4, alpha=0.3)
        axes.plot(x[large], y[large], marker, color=ink, markersize=7, label=printable(model.name))
        if audit.ordered and metric != "calibration":
            _draw_single_values(axes, model, metric, audit.how.smallest_group, series)
        bars.append((x, high, ink))
        small_groups.append((x[~large], y[~large], large.any(), marker, ink))
    if metric == "loss":
        _cut_losses(axes, audit, bars)
    bounds = axes.get_ylim()
    for x, y, others, marker, ink in small_groups:
        # They do not change the scale: outside of it they are at its edge.
        axes.plot(
            x,
            np.clip(y, *bounds) if others else y,
            marker,
            color=ink,
            markersize=5,
            markerfacecolor=PAPER,
            alpha=0.6,
            label="_small",
            scaley=not others,
        )
    axes.set_ylabel(label)
    plain_axes(axes)


def _estimate(group: GroupAudit, metric: str) -> Estimate | None:
    if metric == "calibration":
        return group.calibration.excess if group.calibration else None
    return group.loss if metric == "loss" else group.accuracy


def _draw_single_values(
    axes: Axes, model: ModelAudit, metric: str, smallest: int, series: int
) -> None:
    dots = [point for point in model.curve if point.nodes >= smallest]
    if len(dots) > len(model.groups):
        size = np.array([point.nodes for point in dots], dtype=float)
        axes.scatter(
            [point.value for point in dots],
            [getattr(point, metric).value for point in dots],
            s=6 + 60 * size / size.max(),
            color=color(series),
            marker=MARKERS[series % len(MARKERS)],
            alpha=0.3,
            linewidths=0,
            label="_dots",
        )


def _cut_losses(axes: Axes, audit: Audit, bars: Sequence[tuple[Floats, Floats, str]]) -> None:
    """End the axis of the losses above their dots, whatever their intervals."""
    drawn: list[GroupAudit | CurvePoint] = []
    for model in audit.models:
        drawn += [*model.groups, *model.curve]
    dots = [each.loss.value for each in drawn if each.nodes >= audit.how.smallest_group]
    if dots:
        cut_bars(axes, dots, bars)


def _label_column(axes: Axes, audit: Audit) -> None:
    kind = log_kind(audit)
    axes.set_xlabel(printable(audit.column), parse_math=False)
    if not audit.ordered:
        names = [printable(group.label) for group in audit.models[0].groups]
        labels = [name if len(name) < 25 else f"{name[:23]}…" for name in names]
        if len(labels) > _MOST_LABELS:
            axes.set_xlabel(f"{printable(audit.column)}, {len(labels)} groups", parse_math=False)
            axes.set_xticks([])
            return
        fits = sum(map(len, labels)) <= _LINE_LENGTH
        vertical: dict[str, Any] = {} if fits else {"rotation": 90, "fontsize": 8}
        axes.set_xticks(range(len(labels)), labels, parse_math=False, **vertical)
        return
    if kind is not None:
        axes.set_xscale("function", functions=SCALES[kind])
        ticks = log_ticks(*axes.get_xlim(), kind)
        axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
