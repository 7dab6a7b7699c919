"""A table as Markdown, LaTeX (booktabs) and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from .tables import CHOICE_WORDS, Table


def markdown(table: Table, heading: str = "##") -> str:
    """A heading, the table and its notes."""
    return f"{heading} {table.title}\n\n{markdown_rows(table)}\n" + "".join(
        f"\n{note}\n" for note in table.notes
    )


def markdown_rows(table: Table) -> str:
    rows = [table.head, ["---"] * len(table.head), *table.rows]
    return "\n".join(
        "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def _plain(text: str) -> str:
    """On one line; a leading indent would be lost in Markdown."""
    return " ".join(text.split()) if not text.startswith("  ") else f"– {text.strip()}"


_SPECIAL = {
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


def latex(table: Table) -> str:
    """A ``table`` environment that needs booktabs and, as such tables are wide, graphicx."""
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
    return "".join(_SPECIAL.get(sign, sign) for sign in text.strip())


FIGURES = (
    *("accuracy", "bias", "calibrated_bias", "low_degree_accuracy", "high_degree_accuracy"),
    *("validation_accuracy",),
)


def cells_csv(results: Mapping[str, Any]) -> str:
    """One line a figure: every cell and choice, ours and the paper's, in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            *("protocol", "dataset", "method", "variant", "status", "searched", "chosen_by"),
            *("settings", "figure", "mean", "std", "paper_mean", "paper_std", "verdict"),
        )
    )
    for cell in results["cells"]:
        known = [cell[name] for name in ("protocol", "dataset", "method", "variant", "status")]
        for choice in CHOICE_WORDS:
            chosen = cell["chosen"][choice]
            if chosen is None:
                writer.writerow([*known, cell["searched"], choice])
                continue
            words = " ".join(f"{name}={value}" for name, value in chosen["values"].items())
            for figure in FIGURES:
                paper = (cell["paper"] or {}).get(figure) or (None, None)
                ours = [chosen[figure]["mean"], chosen[figure]["std"]]
                end = [figure, *ours, *paper, chosen["verdict"].get(figure)]
                writer.writerow([*known, cell["searched"], choice, words, *end])
            if cell["protocol"] == "efficiency":
                theirs = cell["paper"] or {}
                for figure, ours_at in (
                    ("parameters", "parameters"),
                    ("memory_mb", "peak_memory_mb"),
                    ("training_seconds", "training_seconds"),
                    ("preparing_seconds", "preparing_seconds"),
                ):
                    numbers = [chosen[ours_at], None, theirs.get(figure), None]
                    end = [figure, *numbers, chosen["verdict"].get(figure)]
                    writer.writerow([*known, cell["searched"], choice, words, *end])
    return out.getvalue()


def all_markdown(tables: Sequence[Table], introduction: str) -> str:
    return "\n".join(["# The paper, reproduced\n", introduction, *map(markdown, tables)])
