"""The section of the report on how ``auto`` has chosen its answer, and its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from .._core.text import printable
from ..experiments.model_search import AutoResult
from .figures import FAINT, INK, PALETTE, PAPER, plain_axes
from .formatting import dataset_name, number, percent
from .leaderboard import COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..experiments.result import Result


def model_choice_sections(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    """What the template shows of each result of ``auto``; results have their names on the page."""
    return [
        {
            "name": printable(name),
            "figure": f"leaderboard-{place}",
            "explanation": [printable(sentence) for sentence in result.explanation],
            "headings": [heading.replace("-\n", "").replace("\n", " ") for heading, *_ in COLUMNS],
            "rows": _rows(result),
            "caption": _caption(result),
        }
        for place, (name, result) in enumerate(results.items())
        if isinstance(result, AutoResult)
    ]


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
    board = result.leaderboard.reset_index(drop=True)
    losses = [loss for loss in board["validation_loss"] if math.isfinite(loss)]
    for chosen, color, label in (
        (False, PALETTE[0], "a member"),
        (True, PALETTE[1], "a chosen member"),
    ):
        rows = board[(board["chosen"] == chosen) & board["validation_loss"].map(math.isfinite)]
        axes.plot(
            rows["validation_loss"],
            rows["low_degree_accuracy"],
            linestyle="none",
            marker="o",
            markersize=9,
            color=color,
            markeredgecolor=PAPER,
            label=label,
            zorder=3,
        )
    _number_members(axes, result)
    axes.plot(
        result.validation_loss,
        result.low_degree_accuracy.mean,
        linestyle="none",
        marker="D",
        markersize=10,
        color=PALETTE[2],
        markeredgecolor=PAPER,
        label="the answer",
        zorder=4,
    )
    if result.baseline is not None:
        axes.axhline(
            result.baseline.low_degree_accuracy.mean,
            color=FAINT,
            linestyle=(0, (5, 2)),
            linewidth=1.5,
            label=result.baseline.title,
        )
    if losses and max(losses) > 4 * min(losses):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("validation loss (lower is better)")
    axes.set_ylabel("accuracy of low degrees (%)")
    plain_axes(axes)
    axes.margins(0.08, 0.12)
    axes.tick_params(which="minor", colors=FAINT, labelcolor=INK, labelsize=8)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, labelcolor=INK, fontsize=9)
    figure.suptitle(
        f"The pool on {dataset_name(result.dataset, result.synthetic)}",
        fontsize=14,
        fontweight="bold",
        color=INK,
        parse_math=False,
    )
    return figure


def _number_members(axes: Axes, result: AutoResult) -> None:
    """Write each member's place beside its mark; members at the same point share one text."""
    texts: dict[tuple[float, float], list[str]] = {}
    points = zip(
        result.leaderboard["validation_loss"],
        result.leaderboard["low_degree_accuracy"],
        strict=True,
    )
    for place, (loss, accuracy) in enumerate(points, start=1):
        if math.isfinite(loss):
            texts.setdefault((round(loss, 2), round(accuracy, 1)), []).append(str(place))
    for point, places in texts.items():
        axes.annotate(
            ", ".join(places),
            point,
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=INK,
            zorder=5,
        )


def _rows(result: AutoResult) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "member": printable(row["member"]),
            "chosen": row["chosen"],
            "cells": [
                f"{row[name]:,}" if name == "parameters" else show(row[name])
                for _, name, show, _ in COLUMNS
            ],
        }
        for place, row in enumerate(result.leaderboard.to_dict("records"), start=1)
    ]


def _caption(result: AutoResult) -> str:
    rival = "" if result.baseline is None else " The dashed line is the tuned GCN."
    return (
        "Validation loss, by which members are chosen, against the accuracy of the quarter of the "
        "evaluated nodes with the lowest degrees, which is not used. The numbers are the places "
        f"in the table; the diamond is the answer.{rival}"
    )


def _words(result: AutoResult) -> str:
    members = "; ".join(
        f"{printable(row['member'])}: {number(row['validation_loss'])}, "
        f"{percent(row['low_degree_accuracy'])} %"
        for row in result.leaderboard.to_dict("records")
    )
    return f"Validation loss and accuracy of low degrees of each member. {members}."
