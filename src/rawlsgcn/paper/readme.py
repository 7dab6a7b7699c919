"""The tables in a README, drawn from the results so that they cannot drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError
from .formats import markdown_rows
from .notes import TUNING
from .output import said
from .plan import MAIN
from .sentences import sentences
from .tables import fair, tables, tuning

BEGIN, END = "<!-- reproduce: begin -->", "<!-- reproduce: end -->"


def drawn(results: Mapping[str, Any]) -> str:
    """GCN and the two methods: the paper's protocol, the fair comparison, and the difference."""
    main = {
        **results,
        "cells": [cell for cell in results["cells"] if cell["method"] in MAIN],
    }
    parts = ["\n".join(f"- {sentence}" for sentence in sentences(results))]
    for table in tables(main):
        if table.key in ("effectiveness-test", "heterophily-test"):
            short = replace(table, head=table.head[:-1], rows=[row[:-1] for row in table.rows])
            parts += [f"**{table.title}**", markdown_rows(short)]
    for table, notes in ((fair(main), fair(main).notes), (tuning(main), TUNING)):
        if table.rows:
            parts += [f"**{table.title}**", *notes, markdown_rows(table)]
    made = "\n".join(f"- {said(made)}" for made in results["made"])
    return "\n\n".join([*parts, f"All of it was made by\n\n{made}"])


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Put the tables between the two markers of a file, and leave the rest as it is."""
    fill(path, drawn(results), BEGIN, END)


def fill(path: Path, text: str, begin: str, end: str) -> None:
    """Put a text between two markers of a file, and leave the rest as it is."""
    before, after = place_in(path, begin, end)
    with atomic_file(path) as temporary:
        temporary.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def place_in(path: Path, begin: str, end: str) -> tuple[str, str]:
    """What stands before and after the two markers; around those of a file to be made, nothing."""
    if not path.exists():
        return "", "\n"
    try:
        whole = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RawlsError(f"cannot read {path}: {reason}") from error
    before, found, rest = whole.partition(begin)
    _, also, after = rest.partition(end)
    if not found or not also:
        raise RawlsError(f"{path} has no place for the tables: add the lines {begin} and {end}")
    return before, after
