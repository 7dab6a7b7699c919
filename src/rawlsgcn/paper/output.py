"""The output folder: whether it is ours, and what is written there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError
from .._core.temporary_files import is_temporary
from ..reporting.figures import save
from .formats import all_markdown, cells_csv, latex
from .page import render
from .pictures import FOLDER, planes
from .sentences import sentences
from .tables import tables
from .verdict import judged_again

RESULTS, STUDIES = "results.json", "studies.db"


def check_folder(out: Path) -> None:
    """Refuse a folder that holds something else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise RawlsError(f"cannot write into {out}: it is a file, not a folder")
    ours = (out / STUDIES).is_file() or _is_ours(out / RESULTS)
    # What a kill left of the first file that is written there says nothing.
    if not ours and not all(is_temporary(path) for path in out.iterdir()):
        raise RawlsError(
            f"{out} holds something else than results of 'rawlsgcn reproduce': "
            "choose another --out, new or empty"
        )


def _is_ours(path: Path) -> bool:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(kept, dict) and {"rawlsgcn", "cells", "claims", "made"} <= set(kept)


def read_results(out: Path) -> dict[str, Any]:
    """The results document that an earlier run wrote, judged by today's rule."""
    path = out / RESULTS
    if not _is_ours(path):
        raise RawlsError(f"there are no results in {path}: run 'rawlsgcn reproduce' first")
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return judged_again(kept)


def earlier(out: Path) -> dict[str, Any]:
    """The results of an earlier run, or nothing."""
    if _is_ours(out / RESULTS):
        return read_results(out)
    return {"datasets": [], "figures": [], "made": []}


def write(results: Mapping[str, Any], out: Path) -> None:
    """The document as JSON, and drawn from it: Markdown, LaTeX, CSV, pictures and the page."""
    _text(out / RESULTS, json.dumps(results, indent=1, allow_nan=False) + "\n")
    made = tables(results)
    introduction = "".join(f"- {sentence}\n" for sentence in sentences(results))
    introduction += "".join(f"\nMade by {said(made)}.\n" for made in results["made"])
    _text(out / "tables.md", all_markdown(made, introduction))
    _text(out / "tables.tex", "\n".join(latex(table) for table in made))
    _text(out / "cells.csv", cells_csv(results))
    for name, (_, figure) in planes(results).items():
        save(figure, out / FOLDER / f"plane-{name}.png")
    _text(out / "index.html", render(results, made, out))


def redraw(out: Path) -> dict[str, Any]:
    """Judge the kept results again and draw all that is drawn from them; nothing is run."""
    results = read_results(out)
    write(results, out)
    return results


def said(made: Mapping[str, Any]) -> str:
    """A command and the machine that it ran on."""
    host = made["machine"]
    gpu = f", {host['gpu']}" if host["gpu"] else ""
    return f"`{made['command']}` on {host['processor']}{gpu}, torch {host['torch']}"


def _text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")
