"""The app, and what its commands share: where they read a graph and where they print."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from .._core.errors import RawlsError
from .._core.version import __version__
from .errors import OneSentence, guarded

if TYPE_CHECKING:
    from rich.console import Console
    from torch_geometric.data import Data

    from ..experiments.result import Result

# Torch's threads spin while they wait for each other, which on a machine with other work to do
# costs several times what it saves; asleep they miss what comes next at once. So they spin for some
# microseconds only. It must be set before torch is loaded; the user's own setting is kept.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

app = typer.Typer(
    name="rawlsgcn",
    cls=OneSentence,
    help="Degree-fair graph neural networks: train them, compare them, see who is worst off.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

F = TypeVar("F", bound=Callable[..., None])


def command(function: F) -> F:
    """Register a command whose user errors become one sentence and exit status 2."""
    app.command()(guarded(function))
    return function


def read_graph(
    dataset: str | None,
    graph: Path | None,
    features: Path | None = None,
    labels: Path | None = None,
    split: str | None = None,
    data_root: Path | None = None,
    **needs: bool,
) -> Data:
    from ..graphs import load, read

    if (dataset is None) == (graph is None):
        raise RawlsError("name one graph: either --dataset NAME or --graph FILE")
    if dataset is not None:
        if features is not None or labels is not None:
            raise RawlsError("--features and --labels go with --graph, not with --dataset")
        return load(dataset, root=data_root, split=split, sparse=True)
    assert graph is not None
    return read(graph, features=features, labels=labels, split=split, sparse=True, **needs)


def parse_settings(pairs: Sequence[str] | None, **given: Any) -> dict[str, Any]:
    settings = {name: value for name, value in given.items() if value is not None}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise RawlsError(
                f"--set takes name=value, for example --set hidden_channels=32, not '{pair}'"
            )
        settings[name] = value
    return settings


def check_outputs(
    json_path: str | None,
    *,
    folder: Path | None = None,
    file: Path | None = None,
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Tell before the work, not after it, that its result could not be written, or would take the
    place of a file that it is made from or of another result."""
    from .._core.atomic_files import check_file, check_folder, same_file

    if folder is not None:
        check_folder(folder)
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
    """Where people read: stdout, or stderr when stdout carries the JSON."""
    from rich.console import Console

    return Console(stderr=json_path == "-")


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


def show(results: list[Result], json_path: str | None) -> None:
    from ..reporting.tables import results_table

    console = people(json_path)
    say_notes([note for result in results for note in result.notes], console)
    console.print(results_table(results))


def say_notes(notes: Sequence[str], console: Console) -> None:
    for note in dict.fromkeys(notes):
        console.print(f"Note: {note}", style="yellow", markup=False, highlight=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rawlsgcn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before a command."""


def split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def typed_command(program: str = "rawlsgcn") -> str:
    """The command line for a page, which others may read: without the password of a storage and
    without this machine's folders (see :func:`~rawlsgcn._core.text.shown_path`)."""
    import shlex

    return shlex.join([*program.split(), *map(_shown_word, sys.argv[1:])])


def _shown_word(word: str) -> str:
    """One word of the command line: a path, a URL, or either after ``--option=``."""
    import re

    from .._core.text import shown_path

    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    value = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:…@", value)
    url = re.match(r"[a-z0-9+]+:///(?=/)", value)  # sqlite:////home/me/studies.db
    scheme = url.group() if url else ""
    file = value.removeprefix(scheme)
    return f"{option}{equals}{scheme}{shown_path(file) if Path(file).is_absolute() else file}"
