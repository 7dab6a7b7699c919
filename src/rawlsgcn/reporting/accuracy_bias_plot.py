"""Accuracy against bias of several methods, and the front of those that no other beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from ..experiments.comparison import Comparison
from .figures import FAINT, INK, PALETTE, Figure, plain_axes
from .formatting import dataset_name

if TYPE_CHECKING:
    from ..experiments.result import Result

#: A bias of zero has no position on a logarithmic axis.
_SMALLEST_BIAS = 1e-6


@dataclass(frozen=True)
class MethodPoint:
    """The mean and standard deviation of a method's bias and accuracy.

    ``printed`` is the bias and accuracy that the paper prints, if any. A method that has not
    ``learned`` is drawn, but is not part of the front.
    """

    title: str
    bias: tuple[float, float]
    accuracy: tuple[float, float]
    printed: tuple[float, float] | None = None
    learned: bool = True


def accuracy_bias_plot(results: Result | Sequence[Result]) -> Figure:
    """Draw accuracy against bias, before (left) and after calibration (right).

    The bias of an under-confident model may be low for that reason only; calibration shows it.

    Args:
        results: Results on the same graph and the same evaluated nodes.

    Returns:
        The matplotlib figure.

    Raises:
        RawlsError: The results are not on the same graph and nodes.
    """
    results = Comparison.of(results)
    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    before, after = figure.subplots(1, 2, sharey=True)
    for axes, metric, title in (
        (before, "bias", "before calibration"),
        (after, "calibrated_bias", "after calibration"),
    ):
        biases = [getattr(result, metric) for result in results]
        draw_accuracy_bias(
            axes,
            [
                MethodPoint(
                    name,
                    (bias.mean, bias.std),
                    (result.accuracy.mean, result.accuracy.std),
                    learned=result.failure is None,
                )
                for result, bias, name in zip(results, biases, results.names, strict=True)
                if bias.mean == bias.mean
            ],
        )
        axes.set_title(title, color=INK, fontsize=12)
    after.set_ylabel("")
    first = results[0]
    figure.suptitle(
        f"Accuracy against bias: {dataset_name(first.dataset, first.synthetic)}",
        fontsize=14,
        fontweight="bold",
        color=INK,
        parse_math=False,
    )
    handles, texts = before.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            texts,
            loc="outside lower center",
            ncols=4,
            frameon=False,
            labelcolor=INK,
            fontsize=9,
        )
    return figure


def draw_accuracy_bias(axes: Axes, points: Sequence[MethodPoint]) -> None:
    """Draw low bias to the left, high accuracy at the top, and the front as a dashed line."""
    places = []
    for index, point in enumerate(points):
        bias, spread = point.bias
        places.append((max(bias, _SMALLEST_BIAS), point.accuracy[0]))
        marker, color = "os"[index >= len(PALETTE)], PALETTE[index % len(PALETTE)]
        axes.errorbar(
            *places[-1],
            xerr=[[min(spread, 0.99 * places[-1][0])], [spread]],
            yerr=point.accuracy[1],
            fmt=marker,
            markersize=8,
            color=color,
            elinewidth=1,
            label=point.title,
        )
        if point.printed is not None:
            axes.plot(
                max(point.printed[0], _SMALLEST_BIAS),
                point.printed[1],
                marker,
                markersize=8,
                markerfacecolor="none",
                color=color,
            )
    learned = [place for place, point in zip(places, points, strict=True) if point.learned]
    if learned:
        axes.plot(
            *zip(*pareto_front(learned), strict=True),
            color=FAINT,
            linestyle="--",
            linewidth=1,
            zorder=0,
            label="_front",
        )
    axes.set_xscale("log")
    for set_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        set_formatter(PlainNumbers(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
    axes.set_xlabel("bias (lower is better)")
    axes.set_ylabel("accuracy in % (higher is better)")
    plain_axes(axes)
    axes.tick_params(which="minor", colors=FAINT, labelcolor=INK, labelsize=9)


class PlainNumbers(LogFormatter):
    """0.05 and 2 rather than powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both: from the least biased to the most accurate."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept
