"""What all figures share: their colors and axes, and how they are saved or put into a page as SVG.

Figures are built as :class:`Figure` objects, without pyplot: no window, no display and no global
state are needed, and nothing has to be closed.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.ticker import LogFormatter

from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError

INK, FAINT, GRID, PAPER = "#1a1c20", "#5c6370", "#d9dce1", "#fefefe"
# Okabe and Ito's palette, whose colors can be told apart with any kind of color vision.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Without a date and with a fixed salt the same figure gives the same bytes.
_REPEATABLE: dict[Any, Any] = {"svg.hashsalt": "rawlsgcn", "svg.fonttype": "none"}
_DATES: dict[str, Any] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
# The page's style sheet gives these variables a value for light, for dark and for print.
_VARIABLES = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    GRID: "var(--grid)",
    PAPER: "var(--card)",
    **{color: f"var(--series-{index})" for index, color in enumerate(PALETTE)},
}
_COLOR = re.compile("|".join(_VARIABLES))
#: Letters of a subtitle that fit into an inch, with room to spare.
_LETTERS_AN_INCH = 13
_FONT = re.compile(r"(font: [^;']*?)'[^;]*")


class Figure(MatplotlibFigure):
    """A matplotlib figure that a notebook shows without ``%matplotlib inline`` and without pyplot.

    Where pyplot or that line has registered a display of figures, it is used instead of this one.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=110)
        return drawn.getvalue()


def color(series: int) -> str:
    """The color of a series, after the last again the first."""
    return PALETTE[series % len(PALETTE)]


def plain_axes(axes: Axes) -> None:
    """Show only the lines that help reading."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelcolor=INK, labelsize=10)
    axes.tick_params(which="minor", colors=FAINT, labelcolor=INK, labelsize=9)
    axes.xaxis.label.set(color=INK, fontsize=11)
    axes.yaxis.label.set(color=INK, fontsize=11)
    axes.set_facecolor("none")


def cut_bars(
    axes: Axes, dots: npt.ArrayLike, bars: Sequence[tuple[npt.ArrayLike, npt.ArrayLike, str]]
) -> None:
    """End the axis at twice the highest of the ``dots``, and mark the bars that go on above it.

    A skewed loss of few nodes has an interval so long that it would leave the dots no room. Each
    of ``bars`` is positions, upper ends and a color.
    """
    bottom, top = axes.get_ylim()
    top = min(top, 2 * float(np.max(dots, initial=0)) or top)
    # The regression line may be negative; the axis does not follow it.
    axes.set_ylim(max(bottom, -0.05 * top), top)
    for place, high, ink in bars:
        cut = np.asarray(place)[np.asarray(high) > top]
        if len(cut):
            style: dict[str, Any] = {"markersize": 5, "clip_on": False, "zorder": 5}
            axes.plot(cut, np.full(len(cut), top), "^", color=ink, label="_cut", **style)


def log_x_axis(axes: Axes) -> None:
    """Make the horizontal axis logarithmic."""
    axes.set_xscale("log")
    for set_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        set_formatter(_PlainNumbers(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))


class _PlainNumbers(LogFormatter):
    """0.05 and 2 rather than powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def title(figure: MatplotlibFigure, text: str, subtitle: str = "") -> None:
    """Write a title above the figure, and a subtitle below it, in as many lines as it needs."""
    figure.suptitle(text, fontsize=14, fontweight="bold", color=INK, parse_math=False)
    if subtitle:
        subtitle = textwrap.fill(subtitle, int(_LETTERS_AN_INCH * figure.get_figwidth()))
        figure.supxlabel(subtitle, fontsize=9, color=FAINT, parse_math=False)


def legend(figure: MatplotlibFigure, axes: Axes, place: str = "lower") -> None:
    """Explain the series of ``axes``, if there are any, below or above the figure."""
    handles, texts = axes.get_legend_handles_labels()
    if handles:
        style: dict[str, Any] = {"loc": f"outside {place} center", "ncols": 4, "fontsize": 9}
        figure.legend(handles, texts, frameon=False, labelcolor=INK, **style)


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
    if suffix not in _DATES:
        raise RawlsError(f"cannot write a figure to {path}: end its name in .png, .svg or .pdf")
    with atomic_file(path) as temporary, matplotlib.rc_context(_REPEATABLE):
        figure.savefig(temporary, format=suffix[1:], dpi=200, metadata=_DATES[suffix])
    return path


def inline_svg(figure: MatplotlibFigure, name: str, label: str) -> str:
    """The figure as one ``<svg>`` element whose ids begin with ``name``.

    ``label`` is what a screen reader says instead. Text remains text, in the font of the page, and
    colors are those of the page. Nothing refers to an outside address.
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


def _local(name: str) -> str:
    return name.rsplit("}", 1)[-1]


def _adapt(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    if key == "style":
        value = _COLOR.sub(lambda match: _VARIABLES[match.group()], value)
        value = _FONT.sub(r"\1var(--font)", value)
    return value
