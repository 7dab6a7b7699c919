"""A figure as SVG inside an HTML page: no outside address, unique ids, any color scheme."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

from .figures import FAINT, GRID, INK, PALETTE, PAPER

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


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as one ``<svg>`` element whose ids begin with ``name``.

    ``label`` is what a screen reader says instead. Text remains text, in the font of the page.
    """
    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "rawlsgcn", "svg.fonttype": "none"}):
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
    value = _REFERENCE.sub(f"url(#{name}-", value)
    if key == "style":
        value = _COLOR.sub(lambda match: _VARIABLES[match.group()], value)
        value = _FONT.sub(r"\1var(--font)", value)
    return value
