"""The options that commands share, as types; nothing heavy is imported for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..graphs.catalog import datasets
from ..methods import MAIN_METHODS, method_names


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


def _beginning(names: Iterable[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def _complete_dataset(incomplete: str) -> list[str]:
    return _beginning(datasets(), incomplete)


def _complete_method(incomplete: str) -> list[str]:
    return _beginning(method_names(), incomplete)


Dataset = Annotated[
    str | None,
    typer.Option(
        autocompletion=_complete_dataset,
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
    typer.Option("--method", autocompletion=_complete_method, help=f"One of {_METHODS}."),
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
