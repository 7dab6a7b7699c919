"""The section of the report on how ``auto`` has chosen its answer, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.text import printable, share
from ..experiments.model_search.result import AutoResult
from .comparison_words import gains
from .figure_style import FAINT, INK, PAPER, Figure, color, legend, log_x_axis, plain_axes, title
from .formatting import dataset_name, number, percent
from .text_tables import leaderboard_rows, one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ..experiments.auditing.audit_result import Audit
    from ..experiments.result import Result

#: The least validation loss that is drawn.
_LEAST_LOSS = 0.001
#: Where a number may be beside its mark: above, below, right, left, and between these.
_ANGLES = [math.pi * part / 4 for part in (0, 4, 2, 6, 1, 3, 5, 7)]


def model_choice_sections(
    results: Mapping[str, Result], audit: Audit | None
) -> tuple[list[dict[str, Any]], dict[str, tuple[Figure, str]]]:
    """What the template shows of each result of ``auto``, and their figures with their words."""
    sections, figures = [], {}
    for place, (name, result) in enumerate(results.items()):
        if not isinstance(result, AutoResult):
            continue
        headings, rows = leaderboard_rows(result)
        # Who gains and who loses, compared with the tuned GCN, if that is on the page.
        rivals = [other for other, each in results.items() if each is result.baseline]
        against = gains(audit, name, rivals[0])[:1] if audit is not None and rivals else []
        section = {
            "name": printable(name),
            "figure": f"leaderboard-{place}",
            "explanation": [*map(printable, result.explanation), *against],
            "headings": one_line(headings),
            "rows": [
                (row["member"], share(row["weight"]) if row["weight"] else "", cells)
                for row, cells in rows
            ],
            "rival": result.baseline is not None,
        }
        sections.append(section)
        members = "; ".join(
            f"{row['member']}: {number(row['validation_loss'])}, "
            f"{percent(row['low_degree_accuracy'])} %"
            for row, _ in rows
        )
        words = f"Validation loss and accuracy of low degrees of each member. {members}."
        figures[f"leaderboard-{place}"] = leaderboard_figure(result), words
    return sections, figures


def leaderboard_figure(result: AutoResult) -> Figure:
    """Draw the members' validation loss against their low-degree accuracy.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        The matplotlib figure; members have their place in the leaderboard as a number.
    """
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = figure.subplots()
    # Where every validation node is right, calibration makes the loss as small as one likes, and a
    # logarithmic axis would leave no room for the other members.
    board = result.leaderboard.reset_index(drop=True)
    board["validation_loss"] = board["validation_loss"].clip(lower=_LEAST_LOSS)
    answer = max(result.validation_loss, _LEAST_LOSS), result.low_degree_accuracy.mean
    sound, chosen = np.isfinite(board["validation_loss"]), board["weight"] > 0
    losses = board["validation_loss"][sound]
    marks: dict[str, Any] = {"linestyle": "none", "markeredgecolor": PAPER}
    for series, (label, rows) in enumerate(
        (("a member", board[sound & ~chosen]), ("a chosen member", board[sound & chosen]))
    ):
        place = rows["validation_loss"], rows["low_degree_accuracy"]
        axes.plot(*place, "o", markersize=9, color=color(series), label=label, zorder=3, **marks)
    # Hollow: a member that is the answer alone stays visible in it.
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 2, "linestyle": "none"}
    axes.plot(*answer, "D", markersize=12, color=color(2), label="the answer", zorder=4, **hollow)
    if result.baseline is not None:
        axes.axhline(
            result.baseline.low_degree_accuracy.mean,
            color=FAINT,
            linestyle=(0, (5, 2)),
            linewidth=1.5,
            label=result.baseline.title,
        )
    if losses.max() > 4 * losses.min():
        log_x_axis(axes)
    drawn = "; less than 0.001 is drawn at 0.001" if answer[0] == _LEAST_LOSS else ""
    axes.set_xlabel(f"validation loss (lower is better{drawn})")
    axes.set_ylabel("accuracy of low degrees (%)")
    plain_axes(axes)
    axes.margins(0.08, 0.12)
    _number_members(axes, board, answer)
    legend(figure, axes)
    title(figure, f"The pool on {dataset_name(result.dataset, result.synthetic)}")
    return figure


def _number_members(axes: Axes, board: pd.DataFrame, answer: tuple[float, float]) -> None:
    """Write each member's place beside its mark, on the side where there is most room."""
    places = board[["validation_loss", "low_degree_accuracy"]].to_numpy(float)
    sound = np.isfinite(places).all(axis=1)
    # Positions of the marks in points; the text is put 11 points away from its mark.
    to_points = axes.transData + axes.figure.dpi_scale_trans.inverted()
    points = 72 * to_points.transform([*places[sound], answer])
    taken = list(points[np.isfinite(points).all(axis=1)])
    offsets = 11 * np.array([(math.sin(angle), math.cos(angle)) for angle in _ANGLES])
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "color": INK}
    for member, own in zip(np.flatnonzero(sound), points, strict=False):
        room = [min(11, *(math.dist(own + side, other) for other in taken)) for side in offsets]
        offset = offsets[np.argmax(np.round(room))]  # the first of equally good sides: above
        taken.append(own + offset)
        where: dict[str, Any] = {"xytext": tuple(offset), "textcoords": "offset points"}
        axes.annotate(str(member + 1), tuple(places[member]), zorder=5, **where, **style)
