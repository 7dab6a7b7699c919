"""The options that commands share, as types, and what is made of them: settings, grids, a graph.

Nothing heavy is imported for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from ..graphs.catalog import datasets
from ..methods import MAIN_METHODS, method_names

if TYPE_CHECKING:
    from torch_geometric.data import Data


def _path(text: str | Path) -> Path:
    if not str(text):
        raise typer.BadParameter("it is empty: give a path")
    return Path(text)


def _json(text: str) -> str:
    if not text:
        raise typer.BadParameter("it is empty: give a file, or '-' for stdout")
    return text


def out_option(help: str) -> typer.models.OptionInfo:
    """``--out``: an empty one (of an unset variable, say) must not mean the current folder."""
    option: typer.models.OptionInfo = typer.Option(parser=_path, metavar="PATH", help=help)
    return option


COMPARED = ",".join(MAIN_METHODS)
_METHODS = ", ".join(method_names())


def _completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


Dataset = Annotated[
    str | None,
    typer.Option(
        autocompletion=_completion(datasets),
        help="A graph by name: see 'rawlsgcn datasets'; or 'synthetic'.",
    ),
]
Graph = Annotated[
    Path | None,
    typer.Option(help="A graph of your own: .csv, .tsv, .txt, .parquet, .json, .npz or .pt."),
]
Features = Annotated[
    Path | None,
    typer.Option(help="Node features, if not in the graph's file; of a .json also attributes."),
]
Labels = Annotated[
    Path | None,
    typer.Option(help="Node labels, if not in the graph's file; of a .json also an attribute."),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="paper (20 a class, 500, 1000), stored (masks), random, or ratios such as 0.6,0.2,0.2."
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Where the named datasets lie (also the variable RAWLSGCN_DATA)."),
]
MethodName = Annotated[
    str,
    typer.Option("--method", autocompletion=_completion(method_names), help=f"One of {_METHODS}."),
]
MethodNames = Annotated[
    str, typer.Option("--methods", help=f"Names, separated by commas, of {_METHODS}.")
]
Lr = Annotated[float | None, typer.Option(help="Learning rate (by default the method's).")]
Epochs = Annotated[int | None, typer.Option(help="Epochs (by default the method's).")]
Normalization = Annotated[
    str | None,
    typer.Option(help="doubly-stochastic, row, column or symmetric, for the RawlsGCN methods."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any other setting, as name=value; may be repeated."),
]
Shards = Annotated[
    Path | None, typer.Option("--shards", help="A graph as shards, a folder that 'shard' wrote.")
]
Memory = Annotated[
    str | None,
    typer.Option(help="The memory to use, such as 8GB (by default 80 % of what is free)."),
]
Seeds = Annotated[int, typer.Option(min=1, help="Number of runs, with seeds 0 to N-1.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto for a GPU where there is one.")]
Engine = Annotated[str, typer.Option(help="auto, stacked, or reference (plain training).")]
TrainEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        help="auto, stacked or reference (the whole graph), smoothed (rows of shards) or sampled.",
    ),
]
Evaluate = Annotated[
    str,
    typer.Option(help="test, or all: every labeled node outside training and validation."),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        parser=_json,
        metavar="FILE",
        help="Write the figures to this file, or '-' for stdout.",
    ),
]


def _in_steps(help: str, min: int | None = None, max: int | None = None) -> typer.models.OptionInfo:
    """An option for training on samples and on smoothed rows, under a heading of its own."""
    heading = "Training in steps (with --num-neighbors or --shards)"
    option: typer.models.OptionInfo = typer.Option(
        rich_help_panel=heading, min=min, max=max, help=help
    )
    return option


NumNeighbors = Annotated[
    str | None,
    _in_steps("Neighbors drawn in each layer, outermost first; -1 for all (10,10 with --shards)."),
]
BatchSize = Annotated[
    int | None,
    _in_steps(
        "Training nodes of a step, shared by all processes (1024 on samples, 4096 on smoothed "
        "rows).",
        min=1,
    ),
]
StepSeed = Annotated[int, _in_steps("Decides weights, order and draws.", min=0, max=2**63 - 1)]
Workers = Annotated[int, _in_steps("Further processes that draw ahead.", min=0)]
Average = Annotated[
    float, _in_steps("Share of the steps, the last ones, whose mean weights are kept.")
]
CheckpointEvery = Annotated[
    int, _in_steps("Steps between checkpoints (0: after epochs alone).", min=0)
]


def parse_settings(pairs: Sequence[str] | None, **given: Any) -> dict[str, Any]:
    """The settings that options and ``--set`` give, by name; those of --set are still text."""
    settings = {name: value for name, value in given.items() if value is not None}
    example = "--set takes name=value, for example --set hidden_channels=32"
    return settings | dict(_pair(pair, example) for pair in pairs or ())


def parse_grid(pairs: Sequence[str] | None) -> dict[str, list[str]] | None:
    """The values that ``--grid`` gives for each setting, as text; None without any."""
    example = "--grid takes name=a,b,c, for example --grid lr=0.05,0.01"
    found: dict[str, list[str]] = {}
    for pair in pairs or ():
        name, values = _pair(pair, example)
        if name in found:
            raise RawlsError(f"--grid gives {name} twice: list all its values in one --grid")
        found[name] = values.split(",")
    return found or None


def _pair(text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise RawlsError(f"{example}, not '{text}'")
    return name, value


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Begin the error of the block with the option whose value it is about."""
    try:
        yield
    except RawlsError as error:
        raise RawlsError(f"{option}: {error}") from None


def split_names(text: str) -> tuple[str, ...]:
    """Names that are separated by commas, spaces or both."""
    return tuple(text.replace(",", " ").split())


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
