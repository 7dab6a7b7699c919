"""The formats of the results: tables in Markdown and LaTeX, all figures as CSV, the HTML page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .figures import accuracy_bias_figures
from .findings import CHOICE_WORDS, sentences
from .tables import Table, chosen_values, mean_and_std, state

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "†": r"$\dagger$",
    "≤": r"$\leq$",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
}


def markdown(table: Table) -> str:
    """Return a heading, the table and its notes."""
    notes = "".join(f"\n{note}\n" for note in table.notes)
    return f"## {table.title}\n\n{markdown_rows(table)}\n{notes}"


def markdown_rows(table: Table) -> str:
    """Return the table alone."""
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join(
        "| " + " | ".join(_one_line(cell).replace("|", "\\|") for cell in row) + " |"
        for row in rows
    )


def _one_line(text: str) -> str:
    """Put a cell on one line; its indent, which Markdown would ignore, becomes a dash."""
    return " ".join(text.split()) if not text.startswith("  ") else f"– {text.strip()}"


def latex(table: Table) -> str:
    """Return a ``table`` environment that needs booktabs and, as it is wide, graphicx."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(table.title)}}}",
        rf"\label{{tab:{table.key}}}",
        rf"\resizebox{{\linewidth}}{{!}}{{\begin{{tabular}}{{{'l' * len(table.head)}}}",
        r"\toprule",
        " & ".join(_tex(name) for name in table.head) + r" \\",
        r"\midrule",
    ]
    before = None
    for row in table.rows:
        if before not in (None, row[0]) and table.head[0] == "graph" and len(table.rows) > 8:
            lines.append(r"\midrule")
        before = row[0]
        lines.append(" & ".join(_tex(cell) for cell in row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""])


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text.strip())


def cells_csv(results: Mapping[str, Any]) -> str:
    """Return one line for each figure, ours and the paper's, in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            *("protocol", "dataset", "method", "variant", "status", "searched", "chosen_by"),
            *("settings", "figure", "mean", "std", "paper_mean", "paper_std", "verdict"),
        )
    )
    names = ("protocol", "dataset", "method", "variant", "status", "searched")
    for cell in results["cells"]:
        for choice in CHOICE_WORDS:
            start = [*(cell[name] for name in names), choice]
            chosen = cell["chosen"][choice]
            if chosen is None:
                writer.writerow(start)
                continue
            settings = " ".join(f"{name}={value}" for name, value in chosen["values"].items())
            for figure, numbers in _figures(cell, chosen):
                verdict = chosen["verdict"].get(figure)
                writer.writerow([*start, settings, figure, *numbers, verdict])
    return out.getvalue()


def _figures(
    cell: Mapping[str, Any], chosen: Mapping[str, Any]
) -> Iterator[tuple[str, list[float | None]]]:
    """Yield each figure's name with mean and deviation, ours and then the paper's."""
    paper = cell["paper"] or {}
    for name in (
        *("accuracy", "bias", "calibrated_bias", "low_degree_accuracy", "high_degree_accuracy"),
        *("validation_accuracy",),
    ):
        theirs = paper.get(name) or (None, None)
        yield name, [chosen[name]["mean"], chosen[name]["std"], *theirs]
    if cell["protocol"] == "efficiency":
        for name in ("parameters", "memory_mb", "training_seconds", "preparing_seconds"):
            ours = chosen["peak_memory_mb" if name == "memory_mb" else name]
            yield name, [ours, None, paper.get(name), None]


def html_page(results: Mapping[str, Any], tables: Sequence[Table], folder: Path) -> str:
    """Return one page with tables, figures and settings; ``folder`` has Figures 1 to 3."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from ..reporting.figures import inline_svg

    environment = Environment(
        # The style sheet is that of every other report.
        loader=ChoiceLoader([PackageLoader("rawlsgcn.paper"), PackageLoader("rawlsgcn.reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pictures = [(folder / f"{each['file']}.svg", each["caption"]) for each in results["figures"]]
    context = {
        "results": results,
        "tables": tables,
        "summary": sentences(results),
        "figures": [
            {"source": _data_url(path), "caption": caption}
            for path, caption in pictures
            if path.is_file()
        ],
        "planes": [
            Markup(inline_svg(figure, name, f"accuracy against bias on {title}"))
            for name, (title, figure) in accuracy_bias_figures(results).items()
        ],
        "runs": [_cell_trials(cell) for cell in results["cells"]],
    }
    return environment.get_template("paper.html.j2").render(context)


def _data_url(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _cell_trials(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return all trials of a cell with their settings and figures, as text."""
    digits = {"validation_accuracy": 2, "accuracy": 2, "bias": 3, "calibrated_bias": 3}
    digits["low_degree_accuracy"] = 1
    settings = cell["trials"][0]["settings"] if cell["trials"] else {}
    fixed = [f"{name} {value}" for name, value in settings.items() if name not in cell["grid"]]
    return {
        "name": cell["name"].removeprefix("rawlsgcn/"),
        "state": state(cell),
        "settings": ", ".join(fixed),
        "trials": [
            {
                "values": chosen_values(trial["values"]),
                "seeds": ", ".join(map(str, trial["seeds"])),
                "figures": [mean_and_std(trial[name], count) for name, count in digits.items()],
                "device": trial["device"],
            }
            for trial in cell["trials"]
        ],
    }
