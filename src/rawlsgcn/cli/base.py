"""The app, and what its commands share: reading a graph and settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .._core import __version__
from .._core.errors import RawlsError
from .errors import OneSentence, guarded

if TYPE_CHECKING:
    from torch_geometric.data import Data


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
    epilog="Begin with 'rawlsgcn demo'; 'rawlsgcn train -h' shows the options of a command, with "
    "examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

F = TypeVar("F", bound=Callable[..., None])


def command(*examples: str) -> Callable[[F], F]:
    """Register a command whose user errors become one sentence and exit status 2.

    Args:
        *examples: What a user types after ``rawlsgcn`` and the command's name, for its --help.
    """

    def register(function: F) -> F:
        lines = [f"rawlsgcn {function.__name__} {words}".rstrip() for words in examples]
        word = "Example" if len(lines) == 1 else "Examples"
        # Typer shows text between empty lines as a line of its own.
        app.command(function.__name__, epilog="\n\n".join([f"{word}:", *lines]))(guarded(function))
        return function

    return register


def show_in_order(names: str) -> None:
    """Show the commands in --help in this order of their names, separated by spaces."""
    app.registered_commands.sort(key=lambda each: names.split().index(each.name or ""))


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


def require_features(data: Data, what: str) -> None:
    """Raise an error for a graph whose features were made of its structure."""
    from ..graphs.notes import GraphFacts

    if GraphFacts.of(data).structural_features:
        raise no_features(what)


def no_features(what: str) -> RawlsError:
    """The error for a graph without features."""
    return RawlsError(f"{what} needs node features, and this graph has none: give --features")


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
