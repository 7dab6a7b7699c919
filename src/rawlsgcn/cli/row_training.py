"""What ``train`` does with the engine 'smoothed': rows of smoothed features, read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.errors import RawlsError
from .outputs import check_outputs, people, write_json

if TYPE_CHECKING:
    from ..graphs.shards import Shards
    from ..methods import Settings


def train_on_rows(
    shards: Shards,
    settings: Settings,
    epochs: int | None,
    out: Path | None,
    json_path: str | None,
    device: str,
    memory: int,
    batch_size: int | None = None,
    **how: Any,
) -> None:
    """Smooth the features if that is not done, train, and say what came of it."""
    from ..experiments.row_fit import fit_rows
    from ..graphs.shard_graph import ShardNodes
    from ..methods.smoothed_mlp_inputs import SmoothedMLPSettings
    from ..reporting.progress import progress
    from ..training.engine_choice import GraphSize
    from ..training.sampled.distributed_context import distributed_context
    from ..training.smoothed.row_training import BATCH_ROWS, keeps_rows, require_rows
    from ..training.smoothed.smooth_shards import smooth_shards
    from ..training.smoothed.smoothed_files import SmoothedForm

    assert isinstance(settings, SmoothedMLPSettings)
    require_rows(settings, how["average"])
    if out is None:
        raise RawlsError("training on smoothed rows needs --out, the folder of its checkpoints")
    check_outputs(json_path, folder=out, shards=shards.folder)
    with distributed_context(device) as context:
        nodes = ShardNodes.of(shards)
        width = GraphSize.of_shards(shards).features // shards.num_nodes
        if width:  # too little memory is an error before the smoothing, which may take long
            keeps_rows(len(nodes.nodes("train")), width, memory, context)
        with progress("smoothing") as tell:
            form = SmoothedForm.of(shards, settings)
            rows = smooth_shards(shards, form, context, memory=memory, progress=tell).rows
        with progress("training") as tell:
            metrics = fit_rows(
                nodes,
                rows,
                settings,
                out,
                row_normalized=form.row_normalized,
                epochs=epochs,
                batch_size=batch_size or BATCH_ROWS,
                context=context,
                memory=memory,
                progress=tell,
                **how,
            )
        if context.rank == 0:
            bias = "undefined" if metrics["bias"] is None else f"{metrics['bias']:.4f}"
            usual = "" if epochs else " (as many as make enough steps; --epochs changes it)"
            kept = "read from disk" if metrics["streamed"] else "kept in memory"
            console = people(json_path)
            for line in (
                f"{metrics['training_rows']:,} training rows, {kept}: {metrics['steps']:,} steps "
                f"in {metrics['epochs']} epochs{usual}, {metrics['seconds']:.1f} s",
                f"{shards.name}, Smoothed MLP, {context.world_size} "
                f"process{'es' * (context.world_size > 1)}: "
                f"accuracy {metrics['accuracy']:.1f}, bias {bias}, "
                f"low-degree accuracy {metrics['low_degree_accuracy']:.1f}; written to {out}",
            ):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            write_json(json_path, metrics)
