"""A table as text, and its forms in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_LATEX = str.maketrans(
    {
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
)


@dataclass(frozen=True)
class Table:
    """A table as text, which every format shows alike."""

    key: str
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: list[str] = field(default_factory=list)

    @property
    def verdicts(self) -> list[int]:
        """The columns that hold a verdict."""
        return [place for place, name in enumerate(self.head) if name == "verdict"]


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
    return text.strip().translate(_LATEX)
