"""The commands for graphs: datasets, predict and balance."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from .._core.text import plural
from . import options as opt
from .base import command, require_one_process
from .options import read_graph
from .outputs import check_outputs, people, say_notes, write_json

if TYPE_CHECKING:
    from torch import Tensor


@command("", "--data-root data --json datasets.json")
def datasets(data_root: opt.DataRoot = None, json_path: opt.Json = None) -> None:
    """List the named graphs, whether they are on disk, and their statistics."""
    from ..graphs.catalog import CATALOG, SYNTHETIC
    from ..graphs.catalog import data_root as root_folder
    from ..reporting.progress import progress
    from ..reporting.tables import datasets_table

    check_outputs(json_path)
    entries = [(entry.name, entry.title, entry.on_disk(data_root)) for entry in CATALOG.values()]
    entries.append((SYNTHETIC, "Synthetic (made on the spot)", True))
    rows: list[dict[str, Any]] = []
    with progress("reading the graphs") as tell:
        for count, (name, title, on_disk) in enumerate(entries):
            row = {"name": name, "title": title, "on_disk": on_disk}
            if on_disk:
                from ..graphs import load, statistics

                tell(count, len(entries), f"reading {name}")
                try:
                    row |= statistics(load(name, root=data_root, sparse=True)).to_dict()
                except RawlsError as error:
                    row["damaged"] = str(error)
            rows.append(row)
    console = people(json_path)
    say_notes([row["damaged"] for row in rows if "damaged" in row], console)
    console.print(datasets_table(rows))
    console.print(f"Looked in {root_folder(data_root)}", style="dim")
    write_json(json_path, rows)


@command("--model model --dataset cora-ml --out predictions.csv")
def predict(
    model: Annotated[Path, typer.Option(help="The folder that 'train --out' wrote.")],
    out: Annotated[Path, opt.out_option("Where to write: .csv, .tsv, .parquet or .npz.")],
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels as for training: which nodes there are, and their order."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Which run's seed (by default the best on validation).")
    ] = None,
    device: opt.Device = "auto",
    shards: opt.Shards = None,
    memory: opt.Memory = None,
    data_root: opt.DataRoot = None,
    json_path: opt.Json = None,
) -> None:
    """Predict every node's class with a trained model, on the same or another graph.

    With --shards the predictions are computed and written block by block.
    """
    import numpy as np
    import torch

    from .._core.argument_checks import node_id_array
    from .._core.machine import pick_device
    from .._core.memory import memory_limit
    from ..evaluation.prediction_writing import check_path, prediction_writer
    from ..experiments.large_graphs.shard_predictions import block_ids, predict_shards, shard_split
    from ..experiments.saved_models import load_model
    from ..graphs import graph_notes
    from ..graphs.node_features import has_negative_features
    from ..graphs.shards.shards import Shards
    from ..reporting.progress import progress

    check_path(out)
    check_outputs(json_path, file=out, inputs=[graph, features, labels], shards=shards)
    trained = load_model(model, seed)
    notes: list[str] = []
    with progress("predicting") as tell:
        blocks: Iterable[tuple[int, Tensor]]
        split: Sequence[str] | np.ndarray[Any, Any] | None
        if shards is not None:
            if any(each is not None for each in (dataset, graph, features, labels)):
                raise RawlsError("--shards has the whole graph: leave out --dataset and files")
            require_one_process("predict")
            opened, limit = Shards(shards), memory_limit(memory)
            name, num_nodes, negative = opened.name, opened.num_nodes, opened.negative_features
            ids, where = block_ids(opened), pick_device(device)
            split = shard_split(trained, opened)
            blocks = predict_shards(trained, opened, memory=limit, device=where, progress=tell)
        else:
            made = trained.structural_features
            needs = {"need_labels": False, "need_features": not made}
            data = read_graph(dataset, graph, features, labels, None, data_root, **needs)
            blocks = [(0, trained.predict(data, device=device))]
            name, num_nodes, split = data.get("name"), int(data.num_nodes), trained.split(data)
            ids = partial(_part, node_id_array(data.get("node_ids"), num_nodes))
            negative = not made and has_negative_features(data.x)
            notes += graph_notes(data)
        words = None if split is None else np.array(split, dtype=str)
        counts = torch.zeros(trained.num_classes, dtype=torch.int64)
        with prediction_writer(out, num_nodes, trained.class_names) as write:
            for first, probabilities in blocks:
                last = first + len(probabilities)
                part = None if words is None else words[first:last]
                write(ids(first, last), probabilities.numpy(), part)
                counts += probabilities.argmax(1).bincount(minlength=trained.num_classes)
    if trained.row_normalized and negative:
        notes.append("some features are negative, unlike those that the model was trained on.")
    console = people(json_path)
    say_notes(notes, console)
    said = f"{trained.method.title}: predictions of {plural(num_nodes, 'node')} in {out}"
    console.print(said, soft_wrap=True)
    summary = {
        "dataset": name,
        "nodes": num_nodes,
        "method": trained.method.name,
        "seed": trained.seed,
        "trained_on": trained.dataset,
        "classes": trained.num_classes,
        "class_names": trained.class_names,
        "predicted": counts.tolist(),
        "out": str(out),
        "notes": notes,
    }
    write_json(json_path, summary)


def _part(ids: Any, first: int, last: int) -> Any:
    return ids[first:last]


@command("--dataset cora-ml --out balanced.npz")
def balance(
    out: Annotated[
        Path | None,
        opt.out_option(
            "Where to write: .npz (scipy's form, with 'scale' and 'node_ids' beside it), or .csv "
            "or .tsv (an edge list; a self-loop's weight is its node's scaling, squared)."
        ),
    ] = None,
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    shards: opt.Shards = None,
    tol: Annotated[float, typer.Option(help="Largest error of a row or column sum.")] = 1e-8,
    max_iterations: Annotated[int, typer.Option(min=2, help="Most products to spend.")] = 10_000,
    memory: opt.Memory = None,
    device: opt.Device = "auto",
    data_root: opt.DataRoot = None,
    json_path: opt.Json = None,
) -> None:
    """Write the doubly stochastic form of a graph's A + I, and its scaling vector.

    With --shards, also under torchrun, the scaling is kept in the shards; arcs that do not fit in
    --memory are read again for each product.
    """
    from ..balancing.solver import require_limits
    from ..reporting.progress import progress

    require_limits(tol, max_iterations)
    if shards is not None:
        from .._core.distributed_context import distributed_context
        from .._core.memory import memory_limit
        from ..balancing.distributed import balance_and_save
        from ..graphs.shards.shards import Shards

        if dataset is not None or graph is not None or out is not None:
            raise RawlsError("--shards has the whole graph: leave out --dataset, --graph and --out")
        check_outputs(json_path)
        limit, folder = memory_limit(memory), Shards(shards)
        with distributed_context(device) as context:
            started = time.perf_counter()
            with progress("balancing") as tell:
                part = balance_and_save(folder, context, tol, max_iterations, limit, tell)
            if context.rank:
                return
            people(json_path).print(
                f"residual {part.residual:.1e} after {part.iterations} products; rows "
                f"{part.first:,} to {part.last:,} here, {part.held_bytes / 2**20:,.1f} MB",
                soft_wrap=True,
            )
            about = {
                "iterations": part.iterations,
                "residual": part.residual,
                "rows": [part.first, part.last],
                "held_bytes": part.held_bytes,
                "processes": context.world_size,
                "seconds": time.perf_counter() - started,
            }
            write_json(json_path, about)
        return
    if memory is not None:
        raise RawlsError("--memory is for shards: add --shards, or leave it out")
    require_one_process("balance", "--shards")
    if out is None:
        raise RawlsError("name the file to write: --out FILE")
    from .._core.machine import pick_device
    from ..balancing import StopReason
    from ..balancing import balance as balance_graph
    from ..balancing.balanced_files import check_matrix_path, write_balanced

    check_matrix_path(out)
    check_outputs(json_path, file=out, inputs=[graph])
    where = pick_device(device)
    data = read_graph(dataset, graph, data_root=data_root, need_labels=False, need_features=False)
    weight = data.get("edge_weight")
    scaling = balance_graph(
        data.edge_index.to(where),
        None if weight is None else weight.to(where),
        num_nodes=data.num_nodes,
        tol=tol,
        max_iterations=max_iterations,
    )
    best_there_is = scaling.reason is StopReason.STAGNATED
    if not scaling.converged and not best_there_is:
        raise RawlsError(
            f"not balanced: the residual is {scaling.residual:.1e} after {scaling.iterations} "
            f"products. {scaling.reason.message}"
        )
    write_balanced(scaling, data.get("node_ids"), out)
    summary = {
        "dataset": data.get("name"),
        "nodes": int(data.num_nodes),
        "iterations": scaling.iterations,
        "residual": scaling.residual,
        "converged": scaling.converged,
        "reason": scaling.reason.name.lower(),
    }
    console = people(json_path)
    if best_there_is:
        say_notes([f"float64 comes no closer than this, so --tol {tol:g} is not met."], console)
    console.print(
        f"{data.get('name')}: every row and column of A + I sums to 1 within "
        f"{scaling.residual:.1e} after {scaling.iterations} products; written to {out}",
        soft_wrap=True,
    )
    write_json(json_path, summary)
