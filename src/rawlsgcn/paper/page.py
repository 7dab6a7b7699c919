"""The page: one HTML file with the tables, the figures and every run's settings."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..reporting.svg import inline_svg
from . import tables as shown
from .pictures import planes
from .sentences import sentences
from .tables import Table


def render(results: Mapping[str, Any], tables: Sequence[Table], folder: Path) -> str:
    """The page as text; ``folder`` holds the pictures that are put into it."""
    environment = Environment(
        # The style sheet is that of every other report.
        loader=ChoiceLoader([PackageLoader("rawlsgcn.paper"), PackageLoader("rawlsgcn.reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    context = {
        "results": results,
        "tables": tables,
        "summary": sentences(results),
        "figures": [
            {"source": _picture(folder / f"{each['file']}.svg"), "caption": each["caption"]}
            for each in results["figures"]
            if (folder / f"{each['file']}.svg").is_file()
        ],
        "planes": [
            Markup(inline_svg(figure, name, f"accuracy against bias on {title}"))
            for name, (title, figure) in planes(results).items()
        ],
        "runs": _runs(results),
    }
    return environment.get_template("paper.html.j2").render(context)


def _picture(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _runs(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every trial of every cell, its settings and figures."""
    listed = []
    for cell in results["cells"]:
        trials = [
            {
                "values": shown.values(trial["values"]),
                "seeds": ", ".join(map(str, trial["seeds"])),
                "figures": [
                    shown.spread(trial[name], digits)
                    for name, digits in (
                        ("validation_accuracy", 2),
                        ("accuracy", 2),
                        ("bias", 3),
                        ("calibrated_bias", 3),
                        ("low_degree_accuracy", 1),
                    )
                ],
                "device": trial["device"],
            }
            for trial in cell["trials"]
        ]
        settings = cell["trials"][0]["settings"] if cell["trials"] else {}
        listed.append(
            {
                "name": cell["name"].removeprefix("rawlsgcn/"),
                "state": shown.state(cell),
                "settings": ", ".join(
                    f"{name} {value}"
                    for name, value in settings.items()
                    if name not in cell["grid"]
                ),
                "trials": trials,
            }
        )
    return listed
