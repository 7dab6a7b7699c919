"""The plane of accuracy against bias: what was tried, and what none of it beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from .figures import FAINT, INK, PALETTE, plain_axes
from .formatting import dataset_name, names, together

if TYPE_CHECKING:
    from ..experiments.result import Result

#: A bias of zero has no place on a logarithmic axis.
_LEAST = 1e-6


@dataclass(frozen=True)
class MethodPoint:
    """One method's place: mean and standard deviation of both figures, and a printed place.

    One that has not ``learned`` is shown, but has no part in the front.
    """

    title: str
    bias: tuple[float, float]
    accuracy: tuple[float, float]
    printed: tuple[float, float] | None = None
    learned: bool = True


def accuracy_bias_plot(results: Result | Sequence[Result]) -> Figure:
    """Accuracy against bias, as it stands and calibrated, of results on one graph.

    A bias may be low because the model is blurred; then its place on the right is another.
    """
    results = together(results)
    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    plain, calibrated = figure.subplots(1, 2, sharey=True)
    labels = names(results)
    for axes, name, title in (
        (plain, "bias", "as it stands"),
        (calibrated, "calibrated_bias", "calibrated"),
    ):
        spreads = [getattr(result, name) for result in results]
        draw_accuracy_bias(
            axes,
            [
                MethodPoint(
                    label,
                    (bias.mean, bias.std),
                    (result.accuracy.mean, result.accuracy.std),
                    learned=result.failure is None,
                )
                for result, bias, label in zip(results, spreads, labels, strict=True)
                if bias.mean == bias.mean
            ],
        )
        axes.set_title(title, color=INK, fontsize=12)
    calibrated.set_ylabel("")
    first = results[0]
    figure.suptitle(
        f"Accuracy against bias: {dataset_name(first.dataset, first.synthetic)}",
        fontsize=14,
        fontweight="bold",
        color=INK,
        parse_math=False,
    )
    handles, texts = plain.get_legend_handles_labels()
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


def draw_accuracy_bias(axes: Axes, tried: Sequence[MethodPoint]) -> None:
    """Low bias to the left, high accuracy above; dashed, the front of what nothing beats."""
    points = []
    for place, each in enumerate(tried):
        bias, spread = each.bias
        points.append((max(bias, _LEAST), each.accuracy[0]))
        shape, colour = "os"[place >= len(PALETTE)], PALETTE[place % len(PALETTE)]
        axes.errorbar(
            *points[-1],
            xerr=[[min(spread, 0.99 * points[-1][0])], [spread]],
            yerr=each.accuracy[1],
            fmt=shape,
            markersize=8,
            color=colour,
            elinewidth=1,
            label=each.title,
        )
        if each.printed is not None:
            axes.plot(
                max(each.printed[0], _LEAST),
                each.printed[1],
                shape,
                markersize=8,
                markerfacecolor="none",
                color=colour,
            )
    able = [point for point, each in zip(points, tried, strict=True) if each.learned]
    if able:
        axes.plot(
            *zip(*pareto_front(able), strict=True),
            color=FAINT,
            linestyle="--",
            linewidth=1,
            zorder=0,
            label="_front",
        )
    axes.set_xscale("log")
    for axis_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        axis_formatter(_Plain(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
    axes.set_xlabel("bias (lower is better)")
    axes.set_ylabel("accuracy in % (higher is better)")
    plain_axes(axes)
    axes.tick_params(which="minor", colors=FAINT, labelcolor=INK, labelsize=9)


class _Plain(LogFormatter):
    """0.05 and 2 rather than powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that none beats in both: from the least biased to the most accurate."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept
