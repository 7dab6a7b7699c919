"""The command shard: a graph in memory, in files of any size, or drawn, cut into ranges of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError, reading
from .._core.text import plural
from . import options as opt
from .base import command, require_one_process
from .options import no_features, read_graph, require_features
from .outputs import check_outputs, people, say_notes

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: What batches that are read or drawn take at least, and the numbers kept for each node.
_BATCHES, _NODE_BYTES = 64 << 20, 64
_WITH_NODES = {"average_degree": "--average-degree", "features": "--num-features", "seed": "--seed"}


@command(
    "--dataset cora-ml --count 2 --out shards",
    "--graph edges.csv --features x.npy --labels labels.csv --memory 4GB --count 4 --out shards",
    "--dataset synthetic --nodes 1000000 --num-features 100 --count 4 --out shards",
)
def shard(
    count: Annotated[int, typer.Option(min=1, help="Number of shards; a process has one or more.")],
    out: Annotated[Path, opt.out_option("Write the shards into this folder.")],
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    split: opt.Split = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Draw a synthetic graph of so many nodes.")
    ] = None,
    average_degree: Annotated[
        float | None, typer.Option(help="With --nodes: mean of the expected degrees (14).")
    ] = None,
    num_features: Annotated[
        int | None, typer.Option(min=1, help="With --nodes: number of features (600).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="With --nodes: seed of the graph (0).")
    ] = None,
    memory: opt.Memory = None,
    data_root: opt.DataRoot = None,
) -> None:
    """Cut a graph into shards on disk, for graphs that one process cannot hold.

    An edge list with --features that does not fit in memory is read in batches, and so is a folder
    of the Open Graph Benchmark, given as --graph. Without labels the shards serve for 'predict'.
    The same command again goes on where it was killed.
    """
    check_outputs(None, folder=out)
    require_one_process("shard")
    from .._core.memory import memory_left, memory_limit
    from ..graphs import graph_notes
    from ..graphs.shards import write_shards
    from ..graphs.shards.shards import require_own
    from ..reporting.progress import progress

    least = _BATCHES + _NODE_BYTES * (nodes or 0)
    room = memory_left(least, memory_limit(memory), "cut a graph into shards")
    require_own(out)  # an error before a large graph is read
    of_nodes = {"average_degree": average_degree, "features": num_features, "seed": seed}
    drawn: dict[str, Any] = {key: value for key, value in of_nodes.items() if value is not None}
    how: dict[str, Any] = {"split": split, "memory": room}
    read = ""
    if nodes is not None:
        from torch_geometric.data import Data

        from ..graphs.catalog import SYNTHETIC
        from ..graphs.streaming.synthetic_shards import synthetic_shards

        if dataset is None or dataset.lower() != SYNTHETIC:
            raise RawlsError("--nodes is the size of a synthetic graph: add --dataset synthetic")
        if any((graph, features, labels)):
            raise RawlsError("a synthetic graph has no files: leave out --graph and its files")
        with progress("drawing the graph") as tell:
            shards = synthetic_shards(out, count, num_nodes=nodes, progress=tell, **drawn, **how)
        data = Data(synthetic=True, num_nodes=nodes)
    elif drawn:
        option = _WITH_NODES[next(iter(drawn))]
        raise RawlsError(f"{option} is for a synthetic graph of any size: add --nodes")
    elif graph is not None and dataset is None and _in_batches(graph, features, labels, room):
        from ..graphs.streaming.file_shards import shard_files
        from ..graphs.streaming.ogb_folders import shard_ogb

        with progress("reading the graph") as tell:
            if graph.expanduser().is_dir():
                shards, data = shard_ogb(out, count, graph, progress=tell, **how)
            else:
                assert features is not None
                shards, data = shard_files(
                    out, count, graph, features, labels, progress=tell, **how
                )
        read = ", read in batches"
    else:
        if graph is None or dataset is not None:
            data = read_graph(dataset, graph, features, labels, split, data_root)
        else:
            data = _read_files(graph, features, labels, split)
            read = ", read at once"
        require_features(data, "cutting a graph into shards")
        shards = write_shards(data, count, out)
    console = people(None)
    say_notes(graph_notes(data), console)
    console.print(
        f"{plural(shards.num_nodes, 'node')} and {plural(shards.num_arcs, 'arc')}{read}, in "
        f"{plural(count, 'shard')}: {out}",
        soft_wrap=True,
    )


def _read_files(graph: Path, features: Path | None, labels: Path | None, split: str | None) -> Data:
    """The graph, which may have no labels: a saved model predicts them."""
    from ..graphs.readers.read_graph import read_raw_graph
    from ..graphs.validation import settle_labels, validate

    with reading(graph, "a graph", [each.name for each in (features, labels) if each]):
        raw = read_raw_graph(graph, features=features, labels=labels)
        labeled = settle_labels(raw, split)
        if not len(raw.source):
            raise RawlsError(f"{raw.graph_from} has no edges")
        return validate(raw, split=split, need_labels=labeled)


def _in_batches(graph: Path, features: Path | None, labels: Path | None, memory: int) -> bool:
    """Whether the graph is read in batches: files that are too large, and folders of OGB."""
    from .._core.memory import size_text
    from ..graphs.readers.table_formats import TABLES
    from ..graphs.streaming.file_shards import memory_in_memory

    if graph.expanduser().is_dir():
        if features is not None or labels is not None:
            raise RawlsError(
                "a folder of the Open Graph Benchmark has its own features and labels: leave out "
                "--features and --labels"
            )
        return True
    needed = memory_in_memory(graph, features, labels)
    if needed <= memory or graph.suffix.lower() not in TABLES:
        return False
    if features is None:
        raise no_features("cutting a graph into shards")
    people(None).print(
        f"Reading in batches: at once the files would take about {size_text(needed)} of memory, "
        f"and {size_text(memory)} are left for them.",
        soft_wrap=True,
    )
    return True
