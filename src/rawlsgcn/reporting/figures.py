"""The paper's Figures 1, 2 and 3 for any result or graph, and what all figures share.

That is their style, and how they are saved to a file or put into an HTML page as SVG: without an
outside address, with unique ids, in any color scheme.

Figures are built as :class:`Figure` objects, without pyplot: no window, no display and no global
state are needed, and nothing has to be closed.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError
from .._core.text import plural
from ..evaluation.degree_bias import LINE_NODES, regression_line
from ..evaluation.influence import degrees_in_laplacian
from ..experiments.comparison import Comparison
from .formatting import dataset_name, num_evaluated, number, seeds_text

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..experiments.result import Result

__all__ = ["by_degree", "degrees", "save", "side_by_side"]

INK, FAINT, GRID, PAPER = "#1a1c20", "#5c6370", "#d9dce1", "#fefefe"
# Okabe and Ito's palette, whose colors can be told apart with any kind of color vision.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_METRICS = (("loss", "average loss"), ("accuracy", "average accuracy (%)"))
# With more nodes than this, their dots are kept as an image inside the vector formats.
_MANY_NODES = 2_000
_FORMATS = (".png", ".svg", ".pdf")
_REPEATABLE: dict[Any, Any] = {"svg.hashsalt": "rawlsgcn", "svg.fonttype": "none"}
# The page's style sheet gives these variables a value for light, for dark and for print.
_VARIABLES = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    GRID: "var(--grid)",
    PAPER: "var(--card)",
    **{color: f"var(--series-{index})" for index, color in enumerate(PALETTE)},
}
_COLOR = re.compile("|".join(_VARIABLES))
_FONT = re.compile(r"(font: [^;']*?)'[^;]*")
_REFERENCE = re.compile(r"url\(#")


class Figure(MatplotlibFigure):
    """A matplotlib figure that a notebook shows without ``%matplotlib inline`` and without pyplot.

    Where pyplot or that line has registered a display of figures, it is used instead of this one.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=110)
        return drawn.getvalue()


def by_degree(result: Result) -> Figure:
    """Draw Figure 1: average loss (top) and accuracy (bottom) by degree, with regression lines.

    A dot is a degree with more than five evaluated nodes, its area grows with their number, its bar
    is the 95 % bootstrap interval.

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
    legend = axes.legend(
        loc="upper left", frameon=False, fontsize=10, markerscale=1.6, labelcolor=INK
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    name = dataset_name(str(graph.get("name") or "graph"), bool(graph.get("synthetic")))
    _titles(
        figure, f"Degrees in A and in Â: {name}", f"{plural(degree.size, 'node')}, one dot each"
    )
    return figure


def save(figure: MatplotlibFigure, path: str | Path) -> Path:
    """Write a figure to a file, completely or not at all; the same figure gives the same bytes.

    Args:
        figure: A matplotlib figure.
        path: The file; its suffix, .png, .svg or .pdf, chooses the format.

    Returns:
        The path of the file.

    Raises:
        RawlsError: The suffix is another, or the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise RawlsError(
            f"cannot write a figure to {path}: end its name in {', '.join(_FORMATS[:-1])} "
            f"or {_FORMATS[-1]}"
        )
    # Without a date and with a fixed salt the same result gives the same bytes.
    dates = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with atomic_file(path) as temporary, matplotlib.rc_context(_REPEATABLE):
        figure.savefig(temporary, format=suffix[1:], dpi=200, metadata=dates[suffix])
    return path


def inline_svg(figure: MatplotlibFigure, name: str, label: str) -> str:
    """The figure as one ``<svg>`` element whose ids begin with ``name``.

    ``label`` is what a screen reader says instead. Text remains text, in the font of the page.
    """
    drawn = io.BytesIO()
    with matplotlib.rc_context(_REPEATABLE):
        figure.savefig(drawn, format="svg", transparent=True, dpi=160, metadata={"Date": None})
    root = ElementTree.fromstring(drawn.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # The style sheet would reach the whole page, the metadata names outside addresses.
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {
            _local(key): _adapt(_local(key), value, name) for key, value in element.attrib.items()
        }
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "style": f"aspect-ratio: {width} / {height}; stroke-linejoin: round; stroke-linecap: butt",
        "role": "img",
        "aria-label": label,
    }
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def plain_axes(axes: Axes) -> None:
    """Show only the lines that help reading."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelcolor=INK, labelsize=10)
    axes.xaxis.label.set(color=INK, fontsize=11)
    axes.yaxis.label.set(color=INK, fontsize=11)
    axes.set_facecolor("none")


def _columns(results: Comparison, width: float) -> Figure:
    figure = Figure(figsize=(width, 6.0), layout="constrained")
    grid = figure.subplots(2, len(results), sharex=True, sharey="row", squeeze=False)
    for column, (result, name) in enumerate(zip(results, results.names, strict=True)):
        for row, (metric, label) in enumerate(_METRICS):
            axes = grid[row, column]
            _draw(axes, result, metric, PALETTE[column % len(PALETTE)])
            if column == 0:
                axes.set_ylabel(label)
            plain_axes(axes)
        grid[1, column].set_xlabel("degree")
        # The regression line may leave the range of accuracies; the axis does not follow it.
        bottom, top = grid[1, column].get_ylim()
        grid[1, column].set_ylim(max(bottom, -4), min(top, 104))
        if len(results) > 1:
            grid[0, column].set_title(name, fontsize=12, color=INK, parse_math=False, pad=8)
    first = results[0]
    dataset = dataset_name(first.dataset, first.synthetic)
    runs = list(dict.fromkeys(seeds_text(result) for result in results))
    _titles(
        figure,
        f"{results.names[0] if len(results) == 1 else 'Methods'} on {dataset}",
        f"{plural(num_evaluated(first), 'evaluated node')} · {' or '.join(runs)} · "
        "dots: degrees with more than five nodes, bars: 95 % intervals",
    )
    return figure


def _draw(axes: Axes, result: Result, metric: str, color: str) -> None:
    """Dots, intervals and the regression line of one method's loss or accuracy."""
    groups = result.by_degree[result.by_degree["count"] >= LINE_NODES]
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
    mean = groups[metric].to_numpy(float)
    low, high = groups[f"{metric}_low"], groups[f"{metric}_high"]
    axes.vlines(degree, low, high, color=color, alpha=0.35, linewidth=1.6)
    size = groups["count"].to_numpy(float)
    axes.scatter(
        degree,
        mean,
        s=18 + 110 * size / size.max(),
        color=color,
        alpha=0.85,
        linewidths=0.6,
        edgecolors=PAPER,
        zorder=3,
    )
    slope, intercept = regression_line(torch.tensor(degree), torch.tensor(mean))
    if not math.isnan(slope):
        ends = np.array([degree.min(), degree.max()])
        axes.plot(ends, intercept + slope * ends, color=INK, linewidth=2, zorder=4, label="_line")
    axes.annotate(
        _slope_text(slope, metric),
        (0.97, 0.94 if metric == "loss" else 0.06),
        xycoords="axes fraction",
        ha="right",
        va="top" if metric == "loss" else "bottom",
        fontsize=10,
        color=INK,
        zorder=5,
        bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 2},
    )


def _slope_text(slope: float, metric: str) -> str:
    if math.isnan(slope):
        return "too few degrees for a line"
    sign = "+" if slope > 0 else ""
    unit = "points per neighbor" if metric == "accuracy" else "per neighbor"
    return f"slope {sign}{number(slope)} {unit}"


def _titles(figure: Figure, title: str, subtitle: str) -> None:
    figure.suptitle(title, fontsize=14, fontweight="bold", color=INK, parse_math=False)
    figure.supxlabel(subtitle, fontsize=9, color=FAINT, parse_math=False)


def _local(name: str) -> str:
    return name.rsplit("}", 1)[-1]


def _adapt(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = _REFERENCE.sub(f"url(#{name}-", value)
    if key == "style":
        value = _COLOR.sub(lambda match: _VARIABLES[match.group()], value)
        value = _FONT.sub(r"\1var(--font)", value)
    return value
