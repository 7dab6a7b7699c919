"""The paper's Figures 1, 2 and 3 for any result or graph.

Figures are built as ``matplotlib.figure.Figure`` objects, without pyplot: no window, no display
and no global state are needed, and nothing stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError
from ..evaluation.influence import degrees_in_laplacian
from .trend import Trend, shown_groups, trend
from .wording import dataset_name, evaluated, names, number, plural, seeds, together

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..experiments.result import Result

INK, FAINT, GRID, PAPER = "#1a1c20", "#5c6370", "#d9dce1", "#fefefe"
# Okabe and Ito's palette, which is told apart with any kind of colour vision.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_AXES = (("loss", "average loss"), ("accuracy", "average accuracy (%)"))
# Above this many nodes a drawing of every one is kept as an image inside the vector formats.
_MANY_NODES = 2_000


def by_degree(result: Result) -> Figure:
    """Figure 1: average loss (top) and accuracy (bottom) by degree, with regression lines.

    A dot is a degree of more than five evaluated nodes, its area grows with their number, its bar
    is the 95 % bootstrap interval.
    """
    return _columns([result], [f"{names([result])[0]} on"], width=6.8)


def side_by_side(results: Result | Sequence[Result]) -> Figure:
    """Figure 3: several methods beside each other, as in Figure 1, on the same axes."""
    results = together(results)
    return _columns(results, names(results), width=max(6.8, 3.6 * len(results)))


def degrees(graph: Data) -> Figure:
    """Figure 2: the degree of every node in A against its degree in Â.

    Â = D̃^(-1/2) (A+I) D̃^(-1/2), its degrees are its row sums. In the doubly stochastic form every
    node has degree 1, the dashed line.
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
    axes.set_xlabel("degree in A (number of neighbours)")
    axes.set_ylabel("degree in Â (row sum)")
    axes.set_ylim(bottom=0)
    plain_axes(axes)
    legend = axes.legend(
        loc="upper left", frameon=False, fontsize=10, markerscale=1.6, labelcolor=INK
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    _headline(
        figure,
        f"Degrees in A and in Â: {_dataset(graph)}",
        f"{plural(degree.size, 'node')}, one dot each",
    )
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure as .png, .svg or .pdf, by the suffix of ``path``; whole or not at all."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise RawlsError(
            f"cannot write a figure to {path}: end its name in {', '.join(_FORMATS[:-1])} "
            f"or {_FORMATS[-1]}"
        )
    # Without a date and with a fixed salt the same result gives the same bytes.
    dated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with (
        atomic_file(path) as temporary,
        matplotlib.rc_context({"svg.hashsalt": "rawlsgcn", "svg.fonttype": "none"}),
    ):
        figure.savefig(temporary, format=suffix[1:], dpi=200, metadata=dated[suffix])
    return path


_FORMATS = (".png", ".svg", ".pdf")


def _columns(results: Sequence[Result], headings: Sequence[str], width: float) -> Figure:
    figure = Figure(figsize=(width, 6.0), layout="constrained")
    grid = figure.subplots(2, len(results), sharex=True, sharey="row", squeeze=False)
    for column, (result, heading) in enumerate(zip(results, headings, strict=True)):
        for row, (figure_name, label) in enumerate(_AXES):
            axes = grid[row, column]
            _draw(axes, result, figure_name, PALETTE[column % len(PALETTE)])
            if column == 0:
                axes.set_ylabel(label)
            plain_axes(axes)
        grid[1, column].set_xlabel("degree")
        # The regression line may leave what is possible; the axis does not follow it.
        bottom, top = grid[1, column].get_ylim()
        grid[1, column].set_ylim(max(bottom, -4), min(top, 104))
        if len(results) > 1:
            grid[0, column].set_title(heading, fontsize=12, color=INK, parse_math=False, pad=8)
    first = results[0]
    dataset = dataset_name(first.dataset, first.synthetic)
    runs = list(dict.fromkeys(seeds(result) for result in results))
    _headline(
        figure,
        f"{headings[0]} {dataset}" if len(results) == 1 else f"Methods on {dataset}",
        f"{plural(evaluated(first), 'evaluated node')} · {' or '.join(runs)} · "
        "dots: degrees with more than five nodes, bars: 95 % intervals",
    )
    return figure


def _draw(axes: Axes, result: Result, name: str, colour: str) -> None:
    """Dots, intervals and the regression line of one method's loss or accuracy."""
    groups = shown_groups(result)
    if not len(groups):
        axes.text(
            0.5,
            0.5,
            "no degree has more than five nodes",
            transform=axes.transAxes,
            ha="center",
            color=FAINT,
        )
        return
    degree = groups.index.to_numpy(float)
    mean = groups[name].to_numpy(float)
    axes.vlines(
        degree,
        groups[f"{name}_low"],
        groups[f"{name}_high"],
        color=colour,
        alpha=0.35,
        linewidth=1.6,
    )
    size = groups["count"].to_numpy(float)
    axes.scatter(
        degree,
        mean,
        s=18 + 110 * size / size.max(),
        color=colour,
        alpha=0.85,
        linewidths=0.6,
        edgecolors=PAPER,
        zorder=3,
    )
    line = trend(groups, name)
    if line is not None:
        ends = np.array([degree.min(), degree.max()])
        axes.plot(ends, line.at(ends), color=INK, linewidth=2, zorder=4, label="_line")
    axes.annotate(
        _slope(line, name),
        (0.97, 0.94 if name == "loss" else 0.06),
        xycoords="axes fraction",
        ha="right",
        va="top" if name == "loss" else "bottom",
        fontsize=10,
        color=INK,
        zorder=5,
        bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 2},
    )


def _slope(line: Trend | None, name: str) -> str:
    if line is None:
        return "too few degrees for a line"
    sign = "+" if line.slope > 0 else ""
    unit = "points per neighbour" if name == "accuracy" else "per neighbour"
    return f"slope {sign}{number(line.slope)} {unit}"


def _dataset(graph: Data) -> str:
    name = graph.get("name") or "graph"
    return dataset_name(str(name), bool(graph.get("synthetic")))


def _headline(figure: Figure, title: str, subtitle: str) -> None:
    figure.suptitle(title, fontsize=14, fontweight="bold", color=INK, parse_math=False)
    figure.supxlabel(subtitle, fontsize=9, color=FAINT, parse_math=False)


def plain_axes(axes: Axes) -> None:
    """Only the lines that help reading."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelcolor=INK, labelsize=10)
    axes.xaxis.label.set(color=INK, fontsize=11)
    axes.yaxis.label.set(color=INK, fontsize=11)
    axes.set_facecolor("none")
