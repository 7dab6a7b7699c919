"""The output folder of a reproduction: its files, their formats, and how they are redrawn.

The formats are JSON, Markdown, LaTeX, CSV, figures and one HTML page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.atomic_files import atomic_file, is_temporary, require_folder
from .._core.errors import RawlsError, reading
from ..reporting.figure_style import inline_svg, save
from .agreement import with_current_verdicts
from .figures import FOLDER, accuracy_bias_figures
from .plan import MAIN
from .significance import significance_tables
from .summary import sentences
from .table_formats import Table, latex, markdown, markdown_rows
from .tables import cells_csv, chosen_values, fair, mean_and_std, state, tables, tuning

RESULTS, SIGNIFICANCE, STUDIES = "results.json", "significance.json", "studies.db"
_KEYS = {
    RESULTS: {"rawlsgcn", "cells", "claims", "made"},
    SIGNIFICANCE: {"rawlsgcn", "graphs", "draws", "evaluate"},
}


def check_folder(out: Path) -> None:
    """Raise an error for a folder that has something else in it."""
    require_folder(out)
    if not out.exists():
        return
    ours = (out / STUDIES).is_file() or any(read_document(out / name) is not None for name in _KEYS)
    # A temporary file that a killed run left is no sign of anything.
    if not ours and not all(is_temporary(path) for path in out.iterdir()):
        raise RawlsError(
            f"{out} has files in it that 'rawlsgcn reproduce' did not write: "
            "choose another --out, new or empty"
        )


def read_document(path: Path) -> dict[str, Any] | None:
    """Read a document of ours; None where there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(document, dict) and _KEYS[path.name] <= set(document)
    return document if ours else None


def read_results(out: Path) -> dict[str, Any] | None:
    """Read the results of an earlier run, with the verdicts of today's rule; None if none."""
    results = read_document(out / RESULTS)
    return None if results is None else with_current_verdicts(results)


def training_hours(out: str | Path) -> float:
    """Compute how long the trials that a folder keeps were trained.

    Args:
        out: A folder that ``reproduce`` wrote.

    Returns:
        The hours of all trials together, also of those that several processes trained at once.

    Raises:
        RawlsError: If there are no results in it.
    """
    results = read_document(Path(out) / RESULTS)
    if results is None:
        raise RawlsError(f"{out} has no {RESULTS}: name a folder that 'rawlsgcn reproduce' wrote")
    trials = [trial for cell in results["cells"] for trial in cell["trials"]]
    return sum(sum(trial["seconds"].values()) for trial in trials) / 3600


def write_results(results: Mapping[str, Any], out: Path) -> None:
    """Write the results as JSON, Markdown, LaTeX, CSV, figures and one HTML page."""
    _write(out / RESULTS, json.dumps(results, indent=1, allow_nan=False) + "\n")
    made = tables(results)
    introduction = "".join(f"- {sentence}\n" for sentence in sentences(results))
    introduction += "".join(f"\nMade by {_command(each)}.\n" for each in results["made"])
    page = ["# The paper, reproduced\n", introduction, *map(markdown, made)]
    _write(out / "tables.md", "\n".join(page))
    _write(out / "tables.tex", "\n".join(latex(table) for table in made))
    _write(out / "cells.csv", cells_csv(results))
    for name, (_, figure) in accuracy_bias_figures(results).items():
        save(figure, out / FOLDER / f"plane-{name}.png")
    _write(out / "index.html", html_page(results, made, out))


def write_significance(document: Mapping[str, Any], out: Path) -> None:
    """Write the significance tests as JSON and Markdown."""
    _write(out / SIGNIFICANCE, json.dumps(document, indent=2, allow_nan=False) + "\n")
    made = "\n".join(markdown(table) for table in significance_tables(document))
    _write(out / "significance.md", f"{made}\nMade by {_command(document)}.\n")


def redraw(out: str | Path, page: str | Path | None = None) -> None:
    """Write all files of a results folder again from its JSON documents; nothing is trained.

    Args:
        out: A folder that ``rawlsgcn reproduce`` wrote.
        page: A Markdown file for the main tables. They replace what is between its lines
            ``<!-- reproduce: begin -->`` and ``<!-- reproduce: end -->``, and the significance
            tables what is between ``<!-- significance: begin -->`` and
            ``<!-- significance: end -->``. A file that does not exist is created.

    Raises:
        RawlsError: If the folder has no results, or the page none of these lines.
    """
    out = Path(out)
    results, significance = read_results(out), read_document(out / SIGNIFICANCE)
    sections = {}
    if results is not None:
        write_results(results, out)
        sections["reproduce"] = main_tables(results)
    if significance is not None:
        write_significance(significance, out)
        sections["significance"] = significance_section(significance)
    if not sections:
        raise RawlsError(f"there are no results in {out / RESULTS}: run 'rawlsgcn reproduce' first")
    if page is not None:
        _fill(Path(page), sections)


def main_tables(results: Mapping[str, Any]) -> str:
    """Return GCN and the two methods in Markdown: both protocols, and tuning against method."""
    main = {**results, "cells": [cell for cell in results["cells"] if cell["method"] in MAIN]}
    blocks = ["\n".join(f"- {sentence}" for sentence in sentences(results))]
    for table in tables(main):
        if table.key in ("effectiveness-test", "heterophily-test"):
            short = replace(table, head=table.head[:-1], rows=[row[:-1] for row in table.rows])
            blocks += [f"**{table.title}**", markdown_rows(short)]
    for table in (fair(main), tuning(main)):
        if table.rows:
            blocks += [f"**{table.title}**", *table.notes, markdown_rows(table)]
    made = "\n".join(f"- {_command(each)}" for each in results["made"])
    return "\n\n".join([*blocks, f"All of it was made by\n\n{made}"])


def significance_section(document: Mapping[str, Any]) -> str:
    """Return the significance tables in Markdown, without headings."""
    return "\n\n".join(markdown_rows(table) for table in significance_tables(document))


def _fill(path: Path, sections: Mapping[str, str]) -> None:
    """Replace what is between the markers of each section, and keep the rest of the file."""
    markers = {name: (f"<!-- {name}: begin -->", f"<!-- {name}: end -->") for name in sections}
    whole = "\n".join(f"{begin}{end}\n" for begin, end in markers.values())
    if path.exists():
        with reading(path):
            whole = path.read_text(encoding="utf-8")
    filled = False
    for name, (begin, end) in markers.items():
        before, has_begin, rest = whole.partition(begin)
        _, has_end, after = rest.partition(end)
        if has_begin and has_end:
            whole, filled = f"{before}{begin}\n\n{sections[name]}\n\n{end}{after}", True
    if not filled:
        lines = " or ".join(f"{begin} and {end}" for begin, end in markers.values())
        raise RawlsError(f"{path} has no place for the tables: add the lines {lines}")
    _write(path, whole)


def _command(made: Mapping[str, Any]) -> str:
    """Return a command and the machine that it ran on."""
    host = made["machine"]
    gpu = f", {host['gpu']}" if host["gpu"] else ""
    return f"`{made['command']}` on {host['processor']}{gpu}, torch {host['torch']}"


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def html_page(results: Mapping[str, Any], tables: Sequence[Table], folder: Path) -> str:
    """Return one page with tables, figures and settings; ``folder`` has Figures 1 to 3."""
    from markupsafe import Markup

    from ..reporting.page import template_environment

    pictures = {folder / f"{each['file']}.svg": each["caption"] for each in results["figures"]}
    page = template_environment("rawlsgcn.paper").get_template("paper.html.j2")
    return page.render(
        results=results,
        tables=tables,
        summary=sentences(results),
        figures={
            caption: base64.b64encode(path.read_bytes()).decode("ascii")
            for path, caption in pictures.items()
            if path.is_file()
        },
        planes=[
            Markup(inline_svg(figure, name, f"accuracy against bias on {title}"))
            for name, (title, figure) in accuracy_bias_figures(results).items()
        ],
        state=state,
        mean_and_std=mean_and_std,
        chosen_values=chosen_values,
    )
