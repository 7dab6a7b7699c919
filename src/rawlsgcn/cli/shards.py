"""What ``balance`` and ``train`` do with shards: graphs of any size.

Several processes are started by torchrun, which also restarts them: ``torchrun --nproc-per-node 2
--max-restarts 3 -m rawlsgcn train --shards …`` goes on from the last checkpoint. torchrun cannot
tell a mistake in the arguments from a lost worker and tries again after either; therefore arguments
are checked before the processes meet, and an error is reported by one of them only.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .._core.errors import RawlsError
from .options import read_graph, require_features
from .outputs import check_outputs, people, say_predictions, write_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from .._core.distributed_context import DistributedContext
    from ..experiments.saved_models import TrainedModel
    from ..graphs.shards.shards import Shards
    from ..methods import Method, Settings
    from ..training.sampled.sources import Source

_IN_STEPS = ("batch_size", "seed", "average", "checkpoint_every")
#: The options of ``train`` that only some engines have, by what each trains on.
_OPTIONS = {
    "the whole graph": set(),
    "samples": {"num_neighbors", "workers", *_IN_STEPS},
    "smoothed rows": set(_IN_STEPS),
}


def given_options(context: typer.Context) -> set[str]:
    """The parameters that the user typed, rather than their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def require_one_process(command: str, cure: str | None = None) -> None:
    """Raise an error if torchrun started several processes that would all do the same work."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        said = f"several processes cannot share '{command}'"
        cured = ": start it without torchrun" if cure is None else f" without {cure}: add it"
        raise RawlsError(f"{said}{cured}")


def require_options(given: set[str], trained_on: str, *, in_shards: bool = True) -> None:
    """Raise an error for an option of ``train`` that does not apply."""
    known: set[str] = set().union(*_OPTIONS.values())
    for name in sorted(given & known - _OPTIONS[trained_on]):
        option = f"--{name.replace('_', '-')}"
        if trained_on == "the whole graph" and not in_shards:
            raise RawlsError(
                f"{option} is for training on samples: add --num-neighbors or --shards"
            )
        raise RawlsError(f"{option} does not apply to training on {trained_on}: leave it out")


def say_choice(trained_on: str, reason: str, json_path: str | None) -> None:
    """Say which engine was chosen and why; of several processes only the first does."""
    if os.environ.get("RANK", "0") == "0":
        people(json_path).print(f"Training on {trained_on}: {reason}.", soft_wrap=True)


def train_on_samples(
    method: str,
    changes: Mapping[str, Any],
    num_neighbors: str,
    graph: Mapping[str, Any],
    shards: Path | None,
    out: Path | None,
    json_path: str | None,
    device: str,
    memory: int,
    average: float,
    evaluate: str,
    data: Data | None = None,
    **how: Any,
) -> None:
    """The command ``train`` with the engine 'sampled'; ``data`` if the graph is read already."""
    from .._core.distributed_context import distributed_context
    from ..experiments.large_graphs.sampled_fit import fit_sampled
    from ..graphs.shards.shards import Shards
    from ..methods import find_method
    from ..reporting.progress import progress
    from ..sampling import parse_num_neighbors
    from ..training.sampled.memory_plan import sampled_rows
    from ..training.sampled.sources import Source
    from ..training.sampled.trainer import require_sampled

    numbers = parse_num_neighbors(num_neighbors)
    chosen = find_method(method)
    settings = chosen.configure({"num_layers": len(numbers), **changes})
    if settings.num_layers != len(numbers):
        raise RawlsError(
            f"--num-neighbors {num_neighbors} is for {len(numbers)} layers, --set num_layers is "
            f"{settings.num_layers}: give one number for each layer"
        )
    require_sampled(chosen, settings, average)
    files = [graph[name] for name in ("graph", "features", "labels")]
    check_outputs(json_path, folder=out, inputs=files, shards=shards)
    with distributed_context(device) as context:
        if shards is None:
            data = read_graph(**graph) if data is None else data
            require_features(data, "training on samples")
            source = Source.of(data, normalize=settings.normalize_features)
        else:
            folder = Shards(shards)
            source = Source.of_shards(folder, normalize=settings.normalize_features)
            share = math.ceil(how["batch_size"] / context.world_size)
            # Too little memory is an error before the balancing, which may take long.
            how["rows_at_once"] = sampled_rows(
                folder, source.num_features, settings, numbers, share, memory, how["workers"]
            )
            source = _balanced(source, chosen, settings, folder, memory, context)
        source = source.evaluated_on(evaluate)
        with progress("training") as show_progress:
            metrics = fit_sampled(
                chosen,
                source,
                settings,
                out,
                num_neighbors=numbers,
                context=context,
                average=average,
                progress=show_progress,
                **how,
            )
        say_trained(metrics, chosen.title, context, out, json_path)


def say_trained(
    metrics: dict[str, Any],
    title: str,
    context: DistributedContext,
    out: Path | None,
    json_path: str | None,
    lines: Sequence[str] = (),
) -> None:
    """Say what came of a training in steps, after further lines; the first process does."""
    from ..experiments.large_graphs.stepwise_runs import spread_text

    if context.rank:
        return
    runs = f", {len(metrics['seeds'])} runs" if "seeds" in metrics else ""
    said = (
        f"{metrics['dataset']}, {title}, {context.world_size} "
        f"process{'es' * (context.world_size > 1)}{runs}: "
        f"accuracy {spread_text(metrics, 'accuracy', 1)}, "
        f"bias {spread_text(metrics, 'bias', 4)}, "
        f"low-degree accuracy {spread_text(metrics, 'low_degree_accuracy', 1)}"
    )
    written = "" if out is None else f"; written to {out}"
    for line in (*lines, f"{said}{written}"):
        people(json_path).print(line, soft_wrap=True)
    write_json(json_path, metrics)


def _balanced(
    source: Source,
    method: Method,
    settings: Settings,
    folder: Shards,
    memory: int,
    context: DistributedContext,
) -> Source:
    """The graph to train on; shards without a scaling are balanced first if the method needs it."""
    from ..balancing.shard_balancing import balance_and_save
    from ..reporting.progress import progress
    from ..training.sampled.sources import Source

    doubly = len(method.normalizations) > 1 and settings.normalization == "doubly-stochastic"
    if doubly:
        folder.require_balanced()
    if source.scale is not None or not doubly:
        return source
    with progress("balancing") as show_progress:
        balance_and_save(folder, context, memory=memory, progress=show_progress)
    return Source.of_shards(folder, normalize=settings.normalize_features)


def predict_on_disk(
    model: TrainedModel,
    shards: Path,
    out: Path,
    device: str,
    memory: str | None,
    json_path: str | None,
) -> None:
    """The command ``predict`` with --shards: block by block, into the file at once."""
    from .._core.machine import pick_device
    from .._core.memory import memory_limit
    from ..evaluation.prediction_writing import prediction_writer
    from ..experiments.large_graphs.shard_predictions import block_ids, predict_shards, shard_split
    from ..graphs.shards.shards import Shards
    from ..reporting.progress import progress

    require_one_process("predict")
    folder = Shards(shards)
    ids, counts = block_ids(folder), [0] * model.num_classes
    names, split = model.class_names, shard_split(model, folder)
    with (
        progress("predicting") as tell,
        prediction_writer(out, folder.num_nodes, names) as write,
    ):
        blocks = predict_shards(
            model, folder, memory=memory_limit(memory), device=pick_device(device), progress=tell
        )
        for first, probabilities in blocks:
            last = first + len(probabilities)
            part = None if split is None else split[first:last]
            write(ids(first, last), probabilities.numpy(), part)
            found = probabilities.argmax(1).bincount(minlength=model.num_classes).tolist()
            counts = [a + b for a, b in zip(counts, found, strict=True)]
    notes = []
    if model.row_normalized and folder.negative_features:
        notes.append("some features are negative, unlike those that the model was trained on.")
    say_predictions(model, folder.name, counts, names, notes, out, json_path)


def balance_on_disk(
    shards: Path,
    tol: float,
    max_iterations: int,
    device: str,
    memory: str | None,
    json_path: str | None,
) -> None:
    """The command ``balance`` with --shards: each process balances a range of them."""
    from .._core.distributed_context import distributed_context
    from .._core.memory import memory_limit
    from ..balancing.shard_balancing import balance_and_save
    from ..balancing.solver import require_limits
    from ..graphs.shards.shards import Shards
    from ..reporting.progress import progress

    check_outputs(json_path)
    require_limits(tol, max_iterations)
    limit = memory_limit(memory)
    folder = Shards(shards)
    with distributed_context(device) as context:
        started = time.perf_counter()
        with progress("balancing") as show_progress:
            scaling = balance_and_save(folder, context, tol, max_iterations, limit, show_progress)
        if context.rank == 0:
            people(json_path).print(
                f"residual {scaling.residual:.1e} after {scaling.iterations} products; "
                f"rows {scaling.first:,} to {scaling.last:,} here, "
                f"{scaling.held_bytes / 2**20:,.1f} MB",
                soft_wrap=True,
            )
            about = {
                "iterations": scaling.iterations,
                "residual": scaling.residual,
                "rows": [scaling.first, scaling.last],
                "held_bytes": scaling.held_bytes,
                "processes": context.world_size,
                "seconds": time.perf_counter() - started,
            }
            write_json(json_path, about)
