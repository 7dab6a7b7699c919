"""What ``train`` does with the engines that take a part of the graph in each step.

Several processes are started by torchrun, which also restarts them: ``torchrun --nproc-per-node 2
--max-restarts 3 -m rawlsgcn train --shards …`` goes on from the last checkpoint. torchrun cannot
tell a mistake in the arguments from a lost worker and tries again after either; therefore arguments
are checked before the processes meet, and an error is reported by one of them only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError
from .._core.text import plural
from .options import require_features
from .outputs import check_outputs, people, write_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from .._core.distributed_context import DistributedContext
    from ..graphs.shards.shards import Shards
    from ..methods import Method, Settings


@dataclass(frozen=True)
class StepOptions:
    """The options of ``train`` that training in steps has, whatever the engine."""

    out: Path | None
    json_path: str | None
    device: str
    memory: int
    evaluate: str
    batch_size: int | None
    #: What both fits take as it is: seeds, average, checkpoint_every.
    run: dict[str, Any]


def train_on_samples(
    method: Method,
    changes: Mapping[str, Any],
    num_neighbors: str,
    workers: int,
    graph: Shards | Callable[[], Data],
    inputs: Sequence[Path | None],
    options: StepOptions,
) -> None:
    """Train on sampled neighborhoods of shards, or of a graph that is read when all is checked."""
    from .._core.distributed_context import distributed_context
    from ..experiments.large_graphs.step_fits import fit_sampled
    from ..graphs.shards.shards import Shards
    from ..reporting.progress import progress
    from ..sampling import parse_num_neighbors
    from ..training.sampled.inference import MOST_ROWS, rows_after_training
    from ..training.sampled.sources import Source
    from ..training.sampled.trainer import require_sampled

    numbers = parse_num_neighbors(num_neighbors)
    settings = method.configure({"num_layers": len(numbers), **changes})
    if settings.num_layers != len(numbers):
        raise RawlsError(
            f"--num-neighbors {num_neighbors} is for {len(numbers)} layers, --set num_layers is "
            f"{settings.num_layers}: give one number for each layer"
        )
    require_sampled(method, settings, options.run["average"])
    shards = graph.folder if isinstance(graph, Shards) else None
    check_outputs(options.json_path, folder=options.out, inputs=inputs, shards=shards)
    batch_size, rows_at_once = options.batch_size or 1024, MOST_ROWS
    with distributed_context(options.device) as context:
        if isinstance(graph, Shards):
            source = Source.of_shards(graph, normalize=settings.normalize_features)
            share = math.ceil(batch_size / context.world_size)
            # Too little memory is an error before the balancing, which may take long.
            rows_at_once = rows_after_training(
                graph, source.num_features, settings, numbers, share, options.memory, workers
            )
            if settings.normalization == "doubly-stochastic":
                with progress("balancing") as tell:
                    source = source.balanced(graph, context, options.memory, tell)
        else:
            data = graph()
            require_features(data, "training on samples")
            source = Source.of(data, normalize=settings.normalize_features)
        with progress("training") as tell:
            metrics = fit_sampled(
                method,
                source.evaluated_on(options.evaluate),
                settings,
                options.out,
                num_neighbors=numbers,
                batch_size=batch_size,
                context=context,
                workers=workers,
                rows_at_once=rows_at_once,
                progress=tell,
                **options.run,
            )
        _say_trained(metrics, method.title, context, options)


def train_on_rows(
    shards: Shards, settings: Settings, epochs: int | None, options: StepOptions
) -> None:
    """Train on rows of smoothed features, which are made first if that is not done."""
    from .._core.distributed_context import distributed_context
    from ..experiments.large_graphs.step_fits import fit_rows
    from ..graphs.shards.shard_graph import ShardNodes
    from ..methods.smoothed_mlp_inputs import SmoothedMLPSettings
    from ..reporting.progress import progress
    from ..training.batch_training import require_average
    from ..training.smoothed.row_order import BATCH_ROWS
    from ..training.smoothed.smooth_shards import smooth_shards
    from ..training.smoothed.smoothed_files import SmoothedForm

    assert isinstance(settings, SmoothedMLPSettings)
    require_average(options.run["average"])
    check_outputs(options.json_path, folder=options.out, shards=shards.folder)
    with distributed_context(options.device) as context:
        nodes, memory = ShardNodes.of(shards).evaluated_on(options.evaluate), options.memory
        form, rows = SmoothedForm.of(shards, settings), len(nodes.nodes("train"))
        with progress("smoothing") as tell:
            made = smooth_shards(
                shards, form, context, memory=memory, training_rows=rows, progress=tell
            )
        with progress("training") as tell:
            metrics = fit_rows(
                nodes,
                made.rows,
                settings,
                options.out,
                row_normalized=form.row_normalized,
                epochs=epochs,
                batch_size=options.batch_size or BATCH_ROWS,
                context=context,
                memory=memory,
                progress=tell,
                **options.run,
            )
        usual = "" if epochs else " (as many as make enough steps; --epochs changes it)"
        kept = "read from disk" if metrics["streamed"] else "kept in memory"
        runs = f"{len(metrics['seeds'])} runs of " if "seeds" in metrics else ""
        runs += "at most " if runs and settings.patience else ""
        line = (
            f"{metrics['training_rows']:,} training rows, {kept}: {metrics['steps']:,} steps in "
            f"{runs}{plural(metrics['epochs'], 'epoch')}{usual}, {metrics['seconds']:.1f} s"
        )
        _say_trained(metrics, "Smoothed MLP", context, options, line)


def _say_trained(
    metrics: dict[str, Any],
    title: str,
    context: DistributedContext,
    options: StepOptions,
    *lines: str,
) -> None:
    """Say what came of a training in steps, after further lines; the first process does."""
    if context.rank:
        return
    runs = f", {len(metrics['seeds'])} runs" if "seeds" in metrics else ""
    written = "" if options.out is None else f"; written to {options.out}"
    said = (
        f"{metrics['dataset']}, {title}, {context.world_size} "
        f"process{'es' * (context.world_size > 1)}{runs}: "
        f"accuracy {_spread_text(metrics['accuracy'], 1)}, "
        f"bias {_spread_text(metrics['bias'], 4)}, "
        f"low-degree accuracy {_spread_text(metrics['low_degree_accuracy'], 1)}{written}"
    )
    for line in (*lines, said):
        people(options.json_path).print(line, soft_wrap=True)
    write_json(options.json_path, metrics)


def _spread_text(value: Any, digits: int) -> str:
    """A metric, or mean ± deviation of several runs; None is one that is not defined."""
    if isinstance(value, dict) and value["mean"] is not None:
        return f"{value['mean']:.{digits}f} ± {value['std']:.{digits}f}"
    return f"{value:.{digits}f}" if isinstance(value, float) else "undefined"
