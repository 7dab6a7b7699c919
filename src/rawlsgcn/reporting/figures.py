"""Figures of results: the paper's Figures 1, 2 and 3 for any result or graph, and accuracy against
bias of several methods, with the front of those that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from matplotlib.axes import Axes

from .._core.text import plural
from ..evaluation.degree_bias import LINE_NODES, regression_line
from ..evaluation.influence import degrees_in_laplacian
from ..experiments.comparison import Comparison
from .figure_style import (
    FAINT,
    INK,
    PALETTE,
    PAPER,
    Figure,
    color,
    cut_bars,
    legend,
    log_x_axis,
    plain_axes,
    save,
    title,
)
from .formatting import dataset_name, num_evaluated, number, seeds_text

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from ..experiments.result import Result

__all__ = ["by_degree", "degrees", "save", "side_by_side"]

_METRICS = (("loss", "average loss"), ("accuracy", "average accuracy (%)"))
_MANY_NODES = 2_000
"""With more nodes than this, their dots are kept as an image inside the vector formats."""
_SMALLEST_BIAS = 1e-6
"""A bias of zero has no position on a logarithmic axis."""


def by_degree(result: Result) -> Figure:
    """Draw Figure 1: average loss (top) and accuracy (bottom) by degree, with regression lines.

    A dot is a degree with more than five evaluated nodes, its area grows with their number, its bar
    is the 95 % bootstrap interval, cut off at an arrow where it is much longer than the others.

    Args:
        result: The result to draw; a node's loss and accuracy are averaged over its runs.

    Returns:
        The matplotlib figure.
    """
    return _columns(Comparison.of(result), width=6.8)


def side_by_side(results: Result | Sequence[Result]) -> Figure:
    """Draw Figure 3: Figure 1 for several methods next to each other, on the same axes.

    Args:
        results: Results on the same graph and the same evaluated nodes.

    Returns:
        The matplotlib figure, one column for each result.

    Raises:
        RawlsError: The results are not on the same graph and nodes.
    """
    results = Comparison.of(results)
    return _columns(results, width=max(6.8, 3.6 * len(results)))


def degrees(graph: Data) -> Figure:
    """Draw Figure 2: the degree of each node in A against its degree in Â.

    Â = D̃^(-1/2) (A+I) D̃^(-1/2), its degrees are its row sums. In the doubly stochastic form every
    node has degree 1, the dashed line.

    Args:
        graph: A graph with ``edge_index`` and, if it is weighted, ``edge_weight``.

    Returns:
        The matplotlib figure.
    """
    degree, in_laplacian = degrees_in_laplacian(graph)
    figure = Figure(figsize=(6.8, 4.2), layout="constrained")
    axes = figure.subplots()
    many = degree.size > _MANY_NODES
    axes.plot(
        degree,
        in_laplacian,
        linestyle="none",
        marker="o",
        markersize=3.2 if many else 4.5,
        markeredgewidth=0,
        color=PALETTE[0],
        alpha=0.45,
        rasterized=many,
        label="a node in Â (GCN)",
    )
    axes.axhline(1, color=PALETTE[1], linestyle=(0, (5, 2)), linewidth=2, label="doubly stochastic")
    axes.set_xlabel("degree in A (number of neighbors)")
    axes.set_ylabel("degree in Â (row sum)")
    axes.set_ylim(bottom=0)
    plain_axes(axes)
    shown = axes.legend(
        loc="upper left", frameon=False, fontsize=10, markerscale=1.6, labelcolor=INK
    )
    for handle in shown.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    name = dataset_name(str(graph.get("name") or "graph"), bool(graph.get("synthetic")))
    title(figure, f"Degrees in A and in Â: {name}", f"{plural(degree.size, 'node')}, one dot each")
    return figure


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
    for axes, metric, when in ((before, "bias", "before"), (after, "calibrated_bias", "after")):
        points = []
        for result, name in zip(results, results.names, strict=True):
            bias, accuracy = getattr(result, metric), result.accuracy
            if not math.isnan(bias.mean):
                means = (bias.mean, bias.std), (accuracy.mean, accuracy.std)
                points.append(MethodPoint(name, *means, learned=result.failure is None))
        draw_accuracy_bias(axes, points)
        axes.set_title(f"{when} calibration", color=INK, fontsize=12)
    after.set_ylabel("")
    title(
        figure, f"Accuracy against bias: {dataset_name(results[0].dataset, results[0].synthetic)}"
    )
    legend(figure, before)
    return figure


def draw_accuracy_bias(axes: Axes, points: Sequence[MethodPoint]) -> None:
    """Draw low bias to the left, high accuracy at the top, and the front as a dashed line."""
    learned = []
    for index, point in enumerate(points):
        (bias, spread), (accuracy, accuracy_spread) = point.bias, point.accuracy
        bias = max(bias, _SMALLEST_BIAS)
        if point.learned:
            learned.append((bias, accuracy))
        style: dict[str, Any] = {"color": color(index), "markersize": 8}
        marker = "os"[index >= len(PALETTE)]
        axes.errorbar(
            bias,
            accuracy,
            xerr=[[min(spread, 0.99 * bias)], [spread]],
            yerr=accuracy_spread,
            fmt=marker,
            elinewidth=1,
            label=point.title,
            **style,
        )
        if point.printed is not None:
            printed_bias, printed_accuracy = point.printed
            place = max(printed_bias, _SMALLEST_BIAS), printed_accuracy
            axes.plot(*place, marker, markerfacecolor="none", **style)
    if learned:
        front = zip(*pareto_front(learned), strict=True)
        axes.plot(*front, color=FAINT, linestyle="--", linewidth=1, zorder=0, label="_front")
    log_x_axis(axes)
    axes.set_xlabel("bias (lower is better)")
    axes.set_ylabel("accuracy in % (higher is better)")
    plain_axes(axes)


def pareto_front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other beats in both: from the least biased to the most accurate."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept


def _columns(results: Comparison, width: float) -> Figure:
    figure = Figure(figsize=(width, 6.0), layout="constrained")
    grid = figure.subplots(2, len(results), sharex=True, sharey="row", squeeze=False)
    for column, (result, name) in enumerate(zip(results, results.names, strict=True)):
        for row, (metric, label) in enumerate(_METRICS):
            axes = grid[row, column]
            _draw(axes, result, metric, color(column))
            if column == 0:
                axes.set_ylabel(label)
            plain_axes(axes)
        grid[1, column].set_xlabel("degree")
        if len(results) > 1:
            grid[0, column].set_title(name, fontsize=12, color=INK, parse_math=False, pad=24)
    # The axes are set by the dots of all panels, when all of them are drawn.
    shown = [_drawn(result) for result in results]
    highest = [groups["loss"].max() for groups in shown]
    for column, groups in enumerate(shown):
        cut_bars(grid[0, column], highest, [(groups.index, groups["loss_high"], color(column))])
    # The regression line may leave the range of accuracies; the axis does not follow it.
    bottom, top = grid[1, 0].get_ylim()
    grid[1, 0].set_ylim(max(bottom, -4), min(top, 104))
    first = results[0]
    dataset = dataset_name(first.dataset, first.synthetic)
    runs = list(dict.fromkeys(seeds_text(result) for result in results))
    title(
        figure,
        f"{results.names[0] if len(results) == 1 else 'Methods'} on {dataset}",
        f"{plural(num_evaluated(first), 'evaluated node')} · {' or '.join(runs)} · "
        "dots: degrees with more than five nodes, bars: 95 % intervals (arrow: longer)",
    )
    return figure


def _drawn(result: Result) -> pd.DataFrame:
    """The degrees with a dot."""
    return result.by_degree[result.by_degree["count"] >= LINE_NODES]


def _draw(axes: Axes, result: Result, metric: str, ink: str) -> None:
    """Dots, intervals and the regression line of one method's loss or accuracy."""
    groups = _drawn(result)
    if not len(groups):
        axes.set(xticks=[], yticks=[])
        words = "no degree has more than five nodes"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=FAINT)
        return
    degree = groups.index.to_numpy(float)
    mean = groups[metric].to_numpy(float)
    low, high = groups[f"{metric}_low"], groups[f"{metric}_high"]
    axes.vlines(degree, low, high, color=ink, alpha=0.35, linewidth=1.6)
    size = groups["count"].to_numpy(float)
    axes.scatter(
        degree,
        mean,
        s=18 + 110 * size / size.max(),
        color=ink,
        alpha=0.85,
        linewidths=0.6,
        edgecolors=PAPER,
        zorder=3,
    )
    slope, intercept = regression_line(torch.tensor(degree), torch.tensor(mean))
    words = "too few degrees for a line"
    if not math.isnan(slope):
        ends = np.array([degree.min(), degree.max()])
        axes.plot(ends, intercept + slope * ends, color=INK, linewidth=2, zorder=4, label="_line")
        unit = "points per neighbor" if metric == "accuracy" else "per neighbor"
        words = f"slope {'+' if slope > 0 else ''}{number(slope)} {unit}"
    place: dict[str, Any] = {"ha": "right", "va": "bottom"}
    axes.annotate(words, (1, 1.02), xycoords="axes fraction", fontsize=10, color=INK, **place)
