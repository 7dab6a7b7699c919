"""Where commands write: checks before the work, the terminal, JSON, and the command as typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError

if TYPE_CHECKING:
    import typer
    from rich.console import Console

    from ..experiments.comparison import Comparison


def check_outputs(
    json_path: str | None,
    *,
    folder: Path | None = None,
    file: Path | None = None,
    inputs: Sequence[str | Path | None] = (),
    shards: Path | None = None,
) -> None:
    """Raise an error before the work if its result could not be written, or would overwrite a file
    that it is made from or another result, or lie among the ``shards``."""
    from .._core.atomic_files import check_file, check_folder, same_file

    if folder is not None:
        check_folder(folder)
    into = folder if file is None else file.parent
    if shards is not None and into is not None and same_file(into.expanduser(), shards):
        raise RawlsError(f"--out {file or folder} is in the folder of the shards: name another")
    json_file = None if json_path in (None, "-") else json_path
    for option, path in (("--out", file), ("--json", json_file)):
        if path is None:
            continue
        check_file(path)
        if any(same_file(path, each) for each in inputs if each is not None):
            raise RawlsError(f"{option} {path} would overwrite a file that is read: name another")
    if file is not None and json_file is not None and same_file(file, json_file):
        raise RawlsError(f"--out and --json both name {file}: give them different files")


def people(json_path: str | None) -> Console:
    """Where people read: stdout, or stderr when stdout carries the JSON.

    Names of the user's are printed as they are, whatever they mean to rich.
    """
    from rich.console import Console

    from ..reporting.progress import clear_status

    clear_status()
    return Console(stderr=json_path == "-", markup=False, emoji=False, highlight=False)


def write_json(path: str | None, value: Any) -> None:
    if path is None:
        return
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from .._core.atomic_files import atomic_file

    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


#: The options that name a graph, its split, and what its nodes are grouped by; their defaults.
_GRAPH_OPTIONS = dict.fromkeys(
    ("dataset", "data_root", "graph", "features", "labels", "shards", "split", "bins")
) | {"evaluate": "test", "by": "degree"}


def graph_options(context: typer.Context) -> dict[str, str]:
    """The given options that name the graph, by name: a page repeats them in its commands."""
    values = {name: context.params.get(name) for name in _GRAPH_OPTIONS}
    return {
        name.replace("_", "-"): str(value)
        for name, value in values.items()
        if value is not None and value != _GRAPH_OPTIONS[name]
    }


def present(
    results: Comparison,
    out: Path | None,
    json_path: str | None,
    write: Callable[[Path], None],
    outdated: Callable[[str], bool] = lambda name: False,
    **how: Any,
) -> None:
    """Audit the results, ``write`` them and a page into the folder ``out``, and print them.

    ``outdated`` names files in the folder to remove, ``how`` has the ``command`` and the
    ``graph_options`` that the page shows.
    """
    from .._core.atomic_folders import atomic_directory
    from ..reporting.audit_verdict import DIVERGED, verdict
    from ..reporting.formatting import judged_runs
    from ..reporting.progress import spinner
    from ..reporting.tables import results_table

    audit = None
    if any(len(result.diverged) < len(result.seeds) for result in results):
        with spinner("auditing"):
            audit = results.audit(**how)
    if out is not None:
        from ..reporting.page import report

        with atomic_directory(out, outdated) as folder, spinner("drawing"):
            write(folder)
            report(audit or results, folder / "report.html", command=how["command"])
    console = people(json_path)
    say_notes([note for result in results for note in result.notes], console)
    console.print(results_table(results))
    words = DIVERGED if audit is None else verdict(audit)
    console.print()
    console.print(words.headline, style="bold")
    if words.comparison is not None:
        console.print(words.comparison)
    if audit is not None and (judged := judged_runs(audit.results)):
        console.print(f"This is about {judged}.", style="dim")


def say_notes(notes: Sequence[str], console: Console) -> None:
    for note in dict.fromkeys(notes):
        console.print(f"Note: {note}", style="yellow")


def say_written(out: Path, console: Console, *, page: bool = True) -> None:
    """Name the folder of the results, and the page in it."""
    named = f"; page: {out / 'report.html'}" if page else ""
    console.print(f"Written to {out}{named}", soft_wrap=True)


def typed_command(program: str = "rawlsgcn") -> str:
    """The command line for a page, which others may read: without the password of a storage and
    without this machine's folders (see :func:`~rawlsgcn._core.redaction.shown_word`)."""
    import shlex

    from .._core.redaction import shown_word

    return shlex.join([*program.split(), *map(shown_word, sys.argv[1:])])
