"""``python -m rawlsgcn.cli.launch``: shards, balancing and sampled training on one process or many.

Many are started by torchrun, which also restarts them: ``torchrun --nproc-per-node 2
--max-restarts 3 -m rawlsgcn.cli.launch train …`` goes on from the last checkpoint. It cannot tell a
mistake in the arguments from a lost worker, so it tries again after that too; arguments are
therefore checked before the processes meet, and a mistake is told once for all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from .base import check_outputs, parse_settings, read_graph, write_json
from .errors import OneSentence, guarded
from .options import (
    DataRoot,
    Dataset,
    Device,
    Epochs,
    Features,
    Graph,
    Json,
    Labels,
    Lr,
    Set,
    Split,
    out_option,
)

if TYPE_CHECKING:
    from ..graphs.shards import Shards
    from ..methods import Settings
    from ..training.sampled.distributed_context import DistributedContext
    from ..training.sampled.sources import Source

app = typer.Typer(
    name="rawlsgcn.cli.launch",
    cls=OneSentence,
    help="Graphs that are too large for one process: cut them, balance them, train on samples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def told_once(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose processes leave without a word where another has said what is wrong."""

    @wraps(command)
    def quiet(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except RawlsError as error:
            if "RANK" in os.environ:
                from ..training.sampled.distributed_context import already_reported

                if already_reported(error):
                    raise typer.Exit(2) from None
            raise

    return quiet


ShardFolder = Annotated[
    Path | None, typer.Option("--shards", help="A folder that the command 'shard' wrote.")
]


@app.command()
@guarded
def shard(
    count: Annotated[int, typer.Option(min=1, help="Shards, one a process.")],
    out: Annotated[Path, out_option("Write the shards into this folder.")],
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    split: Split = None,
    data_root: DataRoot = None,
) -> None:
    """Cut a graph into ranges of rows on disk."""
    check_outputs(None, folder=out)
    from ..graphs.shards import require_own, write_shards

    require_own(out)  # told before a large graph is read
    data = read_graph(dataset, graph, features, labels, split, data_root)
    shards = write_shards(data, count, out)
    typer.echo(f"{shards.num_nodes:,} nodes and {shards.num_arcs:,} arcs in {count} shards: {out}")


@app.command()
@guarded
@told_once
def balance(
    shards: Annotated[Path, typer.Option(help="A folder that the command 'shard' wrote.")],
    tol: Annotated[float, typer.Option(help="Largest |sum − 1| of a row.")] = 1e-8,
    device: Device = "auto",
    json_path: Json = None,
) -> None:
    """Find the doubly stochastic form of shards, each process with one of them."""
    check_outputs(json_path)
    from ..balancing.solver import require_limits
    from ..graphs.shards import Shards
    from ..training.sampled.distributed_context import distributed_context

    require_limits(tol, 2000)
    folder = Shards(shards)
    with distributed_context(device) as context:
        started = time.perf_counter()
        about = _balance(folder, tol, context)
        about["seconds"] = time.perf_counter() - started
        if context.rank == 0:
            typer.echo(
                f"residual {about['residual']:.1e} after {about['iterations']} products; "
                f"rows {about['rows'][0]:,} to {about['rows'][1]:,} here, "
                f"{about['held_bytes'] / 2**20:,.1f} MB",
                err=json_path == "-",
            )
            write_json(json_path, about)


@app.command()
@guarded
@told_once
def train(
    out: Annotated[Path, out_option("Keep the model, its figures and checkpoints here.")],
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    shards: ShardFolder = None,
    method: Annotated[
        str, typer.Option(help="rawlsgcn-graph, rawlsgcn-grad or gcn.")
    ] = "rawlsgcn-graph",
    num_neighbors: Annotated[
        str, typer.Option(help="Neighbours drawn in each layer, outermost first; -1 for all.")
    ] = "10,10",
    batch_size: Annotated[
        int, typer.Option(min=1, help="Training nodes of a step, shared by all processes.")
    ] = 1024,
    lr: Lr = None,
    epochs: Epochs = None,
    settings: Set = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Decides weights, order and draws.")
    ] = 0,
    workers: Annotated[
        int, typer.Option(min=0, help="Further processes of each process that draw ahead.")
    ] = 0,
    average: Annotated[
        float, typer.Option(help="Share of the steps, the last, whose mean weights are kept.")
    ] = 0.1,
    checkpoint_every: Annotated[
        int, typer.Option(min=0, help="Steps between checkpoints (0: after each epoch).")
    ] = 0,
    split: Split = None,
    device: Device = "auto",
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Train on sampled neighbourhoods; goes on from the checkpoint in --out if there is one."""
    from ..experiments.sampled_fit import fit_sampled
    from ..methods import find_method
    from ..sampling.neighborhoods import parse_num_neighbors
    from ..training.sampled.distributed_context import distributed_context
    from ..training.sampled.trainer import require_sampled

    numbers = parse_num_neighbors(num_neighbors)
    chosen = find_method(method)
    changes = parse_settings(settings, lr=lr, epochs=epochs)
    changed = chosen.configure({"num_layers": len(numbers), **changes})
    if changed.num_layers != len(numbers):
        raise RawlsError(
            f"--num-neighbors {num_neighbors} is for {len(numbers)} layers, --set num_layers says "
            f"{changed.num_layers}: give one number for each layer"
        )
    require_sampled(chosen, changed, average)
    check_outputs(json_path, folder=out, inputs=[graph, features, labels])
    needs_scale = chosen.name != "gcn" and changed.normalization == "doubly-stochastic"
    with distributed_context(device) as context:
        source = _source(changed, dataset, graph, features, labels, shards, split, data_root)
        if shards is not None and source.scale is None and needs_scale:
            source = _balanced(source, shards, context)
        metrics = fit_sampled(
            chosen,
            source,
            changed,
            out,
            checkpoint_every,
            num_neighbors=numbers,
            batch_size=batch_size,
            seed=seed,
            context=context,
            workers=workers,
            average=average,
        )
        if context.rank == 0:
            typer.echo(
                f"{source.name}, {chosen.title}, {context.world_size} "
                f"process{'es' * (context.world_size > 1)}: accuracy {metrics['accuracy']:.1f}, "
                f"bias {'undefined' if metrics['bias'] is None else format(metrics['bias'], '.4f')}"
                f", low-degree accuracy {metrics['low_degree_accuracy']:.1f}; written to {out}",
                err=json_path == "-",
            )
            write_json(json_path, metrics)


def _source(
    settings: Settings,
    dataset: str | None,
    graph: Path | None,
    features: Path | None,
    labels: Path | None,
    shards: Path | None,
    split: str | None,
    data_root: Path | None,
) -> Source:
    from ..graphs.shards import Shards
    from ..training.sampled.sources import Source

    normalize = settings.normalize_features
    if shards is None:
        data = read_graph(dataset, graph, features, labels, split, data_root)
        return Source.of(data, normalize=normalize)
    if dataset is not None or graph is not None or features is not None or labels is not None:
        raise RawlsError("--shards holds a whole graph: leave --dataset, --graph and files away")
    return Source.of_shards(Shards(shards), normalize=normalize)


def _balanced(source: Source, shards: Path, context: DistributedContext) -> Source:
    """The source with the scaling of its shards, which all processes find together."""
    from ..graphs.shards import Shards

    folder = Shards(shards)
    if len(folder) != context.world_size:
        raise RawlsError(
            f"the {len(folder)} shards in {shards} are not balanced yet: run torchrun "
            f"--nproc-per-node {len(folder)} -m rawlsgcn.cli.launch balance --shards {shards}"
        )
    _balance(folder, 1e-8, context)
    return type(source).of_shards(folder, normalize=source.normalize)


def _balance(shards: Shards, tol: float, context: DistributedContext) -> dict[str, Any]:
    """Balance the shards and keep each piece of x beside its shard."""
    from torch import distributed

    from ..balancing.distributed import balance_shards

    scaling = balance_shards(shards, tol=tol, device=context.device)
    if not scaling.converged and not scaling.residual <= tol:
        raise RawlsError(f"the shards could not be balanced: {scaling.reason.message}")
    shards.remove_scale(context.rank)
    if context.world_size > 1:
        distributed.barrier()  # every old piece is gone before a new one is there
    shards.write_scale(context.rank, scaling.scale.cpu().numpy())
    if context.world_size > 1:
        distributed.barrier()
    return {
        "iterations": scaling.iterations,
        "residual": scaling.residual,
        "rows": [scaling.first, scaling.last],
        "held_bytes": scaling.held_bytes,
        "processes": context.world_size,
    }


if __name__ == "__main__":
    app()
