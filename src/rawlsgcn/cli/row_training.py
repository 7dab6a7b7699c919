"""What ``train`` does with the engine 'smoothed': rows of smoothed features, read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.text import plural
from .outputs import check_outputs
from .shards import say_trained

if TYPE_CHECKING:
    from ..graphs.shards.shards import Shards
    from ..methods import Settings


def train_on_rows(
    shards: Shards,
    settings: Settings,
    epochs: int | None,
    out: Path | None,
    json_path: str | None,
    device: str,
    memory: int,
    *,
    evaluate: str,
    batch_size: int | None = None,
    **how: Any,
) -> None:
    """Smooth the features if that is not done, train, and say what came of it."""
    from .._core.distributed_context import distributed_context
    from ..experiments.large_graphs.row_fit import fit_rows
    from ..graphs.shards.shard_graph import ShardNodes
    from ..methods.smoothed_mlp_inputs import SmoothedMLPSettings
    from ..reporting.progress import progress
    from ..training.engine_choice import GraphSize
    from ..training.in_steps.batch_training import require_average
    from ..training.smoothed.row_training import BATCH_ROWS, keeps_rows
    from ..training.smoothed.smooth_shards import smooth_shards
    from ..training.smoothed.smoothed_files import SmoothedForm

    assert isinstance(settings, SmoothedMLPSettings)
    require_average(how["average"])
    check_outputs(json_path, folder=out, shards=shards.folder)
    with distributed_context(device) as context:
        nodes = ShardNodes.of(shards).evaluated_on(evaluate)
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
        usual = "" if epochs else " (as many as make enough steps; --epochs changes it)"
        kept = "read from disk" if metrics["streamed"] else "kept in memory"
        runs = f"{len(metrics['seeds'])} runs of " if "seeds" in metrics else ""
        runs += "at most " if runs and settings.patience else ""
        line = (
            f"{metrics['training_rows']:,} training rows, {kept}: {metrics['steps']:,} steps in "
            f"{runs}{plural(metrics['epochs'], 'epoch')}{usual}, {metrics['seconds']:.1f} s"
        )
        say_trained(metrics, "Smoothed MLP", context, out, json_path, [line])
