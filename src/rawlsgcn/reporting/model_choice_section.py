"""The section of the report on how ``auto`` has chosen its answer, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.text import printable, share
from ..experiments.model_search import AutoResult
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
) -> list[dict[str, Any]]:
    """What the template shows of each result of ``auto``; results have their names on the page."""
    sections = []
    for place, (name, result) in enumerate(results.items()):
        if not isinstance(result, AutoResult):
            continue
        headings, rows = leaderboard_rows(result)
        # Who gains and who loses, compared with the tuned GCN, if that is on the page.
        rivals = [other for other, each in results.items() if each is result.baseline]
        against = gains(audit, name, rivals[0])[:1] if audit is not None and rivals else []
        sections.append(
            {
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
        )
    return sections


def model_choice_figures(results: Mapping[str, Result]) -> dict[str, tuple[Figure, str]]:
    """The figure of each of these sections, with its words."""
    return {
        f"leaderboard-{place}": (leaderboard_figure(result), _words(result))
        for place, result in enumerate(results.values())
        if isinstance(result, AutoResult)
    }


def leaderboard_figure(result: AutoResult) -> Figure:
    """Draw the members' validation loss against their low-degree accuracy.

    Args:
        result: What :func:`rawlsgcn.auto` found.

    Returns:
        The matplotlib figure; members have their place in the leaderboard as a number.
    """
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axes = figure.subplots()
    board, answer_loss = _drawn_losses(result)
    losses = [loss for loss in board["validation_loss"] if math.isfinite(loss)]
    sound, chosen = board["validation_loss"].map(math.isfinite), board["weight"] > 0
    marks: dict[str, Any] = {"linestyle": "none", "markeredgecolor": PAPER}
    for series, (label, rows) in enumerate(
        (("a member", board[sound & ~chosen]), ("a chosen member", board[sound & chosen]))
    ):
        place = rows["validation_loss"], rows["low_degree_accuracy"]
        axes.plot(*place, "o", markersize=9, color=color(series), label=label, zorder=3, **marks)
    answer = answer_loss, result.low_degree_accuracy.mean
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
    if losses and max(losses) > 4 * min(losses):
        log_x_axis(axes)
    below = answer_loss == _LEAST_LOSS
    axes.set_xlabel(
        "validation loss (lower is better"
        + ("; less than 0.001 is drawn at 0.001)" if below else ")")
    )
    axes.set_ylabel("accuracy of low degrees (%)")
    plain_axes(axes)
    axes.margins(0.08, 0.12)
    _number_members(axes, board, answer)
    legend(figure, axes)
    title(figure, f"The pool on {dataset_name(result.dataset, result.synthetic)}")
    return figure


def _drawn_losses(result: AutoResult) -> tuple[pd.DataFrame, float]:
    """The leaderboard and the answer's validation loss, both at least ``_LEAST_LOSS``.

    Where every validation node is right, calibration makes the loss as small as one likes, and a
    logarithmic axis would leave no room for the other members.
    """
    board = result.leaderboard.reset_index(drop=True)
    board["validation_loss"] = board["validation_loss"].clip(lower=_LEAST_LOSS)
    return board, max(result.validation_loss, _LEAST_LOSS)


def _number_members(axes: Axes, board: pd.DataFrame, answer: tuple[float, float]) -> None:
    """Write each member's place beside its mark, on the side where there is most room."""
    members = [*zip(board["validation_loss"], board["low_degree_accuracy"], strict=True)]
    marks = [*members, answer]
    # Positions of the marks in points; the text is put 11 points away from its mark.
    to_points = axes.transData + axes.figure.dpi_scale_trans.inverted()
    taken = [72 * to_points.transform(mark) for mark in marks if all(map(math.isfinite, mark))]
    for place, member in enumerate(members, start=1):
        if not all(map(math.isfinite, member)):
            continue
        own = 72 * to_points.transform(member)
        offsets = [11 * np.array([math.sin(angle), math.cos(angle)]) for angle in _ANGLES]
        room = [
            min((math.dist(own + offset, other) for other in taken), default=math.inf)
            for offset in offsets
        ]
        # The first of equally good sides: above.
        best = max(range(len(offsets)), key=lambda side: round(min(room[side], 11)))
        taken.append(own + offsets[best])
        axes.annotate(
            str(place),
            member,
            xytext=tuple(offsets[best]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9,
            color=INK,
            zorder=5,
        )


def _words(result: AutoResult) -> str:
    members = "; ".join(
        f"{printable(row['member'])}: {number(row['validation_loss'])}, "
        f"{percent(row['low_degree_accuracy'])} %"
        for row in result.leaderboard.to_dict("records")
    )
    return f"Validation loss and accuracy of low degrees of each member. {members}."
