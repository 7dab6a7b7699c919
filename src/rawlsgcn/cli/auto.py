"""The command that chooses a model: auto."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from . import options as opt
from .base import command, interruptible, require_one_process
from .options import read_graph
from .outputs import (
    check_outputs,
    graph_options,
    people,
    say_notes,
    say_written,
    typed_command,
    write_json,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..experiments.auditing.audit_result import Audit
    from ..experiments.model_search.result import AutoResult


@command("--dataset cora-ml --out best", "--graph graph.npz --time-limit 60")
def auto(
    context: typer.Context,
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    transferable: Annotated[
        bool,
        typer.Option(
            "--transferable", help="Leave out models that cannot be used on another graph."
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="Compare with a GCN tuned with as many runs as the whole pool, not with the "
            "pool's GCN.",
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Start nothing new after so many seconds, and use what there is by then.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same answer.")] = 0,
    split: opt.Split = None,
    evaluate: opt.Evaluate = "test",
    device: opt.Device = "auto",
    shards: opt.Shards = None,
    memory: opt.Memory = None,
    data_root: opt.DataRoot = None,
    out: Annotated[
        Path | None,
        opt.out_option(
            "Keep the model, metrics, predictions, the leaderboard, a page and pictures."
        ),
    ] = None,
    json_path: opt.Json = None,
) -> None:
    """The best model for this graph, and why.

    A pool of models is judged by the validation nodes; the answer is the mean of the best.
    Ctrl-C and SIGTERM end the training and use the best of the models that are finished. Of a graph
    in shards that does not fit in memory, those models are trained that need smoothed rows alone.
    """
    from ..experiments.model_search.auto import auto as find_best
    from ..reporting.progress import progress, spinner

    if time_limit is not None and not time_limit > 0:
        raise RawlsError(f"--time-limit must be a positive number of seconds, not {time_limit:g}")
    check_outputs(json_path, folder=out, inputs=[graph, features, labels], shards=shards)
    search: dict[str, Any] = {"seed": seed, "evaluate": evaluate, "time_limit": time_limit}
    if shards is None:
        data = read_graph(dataset, graph, features, labels, split, data_root)
    elif any(each is not None for each in (dataset, graph, features, labels, split)):
        raise RawlsError("--shards has the whole graph: leave out --dataset, --split and files")
    elif (fitting := _whole_graph(shards, memory)) is not None:
        data = fitting
    elif baseline:
        raise RawlsError(
            "--baseline needs the whole graph, which does not fit in memory: leave it out, or "
            "raise --memory"
        )
    else:
        return _search_rows(shards, memory, device, out, json_path, **search)
    search |= {"device": device, "transferable": transferable, "baseline": baseline}
    said = "interrupted: the best of what is finished is kept; Ctrl-C again stops at once"
    with interruptible(said) as interruptions:
        with progress("training", seconds=True) as tell:
            result = find_best(data, progress=tell, **search)
        if interruptions and out is not None:  # who sent SIGTERM may not wait for the page
            _write(result, None, out)
        audit = None
        try:
            if out is not None or result.baseline is not None:
                with spinner("auditing"):
                    how = {"command": typed_command(), "graph_options": graph_options(context)}
                    audit = result.audit(**how)
                    if out is not None:
                        _write(result, audit, out)
        except KeyboardInterrupt:
            # The training is done: its model is kept.
            audit = None
            result.notes.append("interrupted after the training: there is no page and no picture.")
            if out is not None and len(interruptions) < 2:
                _write(result, None, out)
    _show(result, audit, out, json_path)
    write_json(json_path, result.to_dict())


def _whole_graph(shards: Path, memory: str | None) -> Data | None:
    """The graph in shards, if training the pool on it fits in memory."""
    from .._core.memory import code_memory, memory_limit
    from ..experiments.model_search.pool import DECAYS, RATES
    from ..graphs.shards.shard_graph import graph_of_shards
    from ..graphs.shards.shards import Shards
    from ..methods import Settings
    from ..training.engine_choice import GraphSize, whole_graph_bytes

    require_one_process("auto")
    folder = Shards(shards)
    folder.require_labels()
    runs = len(RATES) * len(DECAYS)
    limit = memory_limit(memory)
    needed = code_memory() + whole_graph_bytes(GraphSize.of_shards(folder), Settings(), runs)
    return graph_of_shards(folder) if needed <= limit else None


def _search_rows(
    shards: Path,
    memory: str | None,
    device: str,
    out: Path | None,
    json_path: str | None,
    *,
    evaluate: str,
    **search: Any,
) -> None:
    """Train the members that need only smoothed rows, and say which were left out and why."""
    from .._core.machine import pick_device
    from .._core.memory import memory_limit
    from ..experiments.model_search.auto import time_notes
    from ..experiments.model_search.row_search import auto_rows
    from ..graphs.shards.shard_graph import ShardNodes
    from ..graphs.shards.shards import Shards
    from ..reporting.progress import progress

    nodes = ShardNodes.of(Shards(shards)).evaluated_on(evaluate)
    search |= {"memory": memory_limit(memory), "device": pick_device(device)}
    with progress("training") as tell, tempfile.TemporaryDirectory() as unkept:
        found = auto_rows(nodes, Path(unkept) if out is None else out, progress=tell, **search)
    console = people(json_path)
    notes = [
        f"the whole graph does not fit in memory, so '{name}' was left out: {why}."
        for name, why in found["left_out"].items()
    ]
    say_notes(notes + time_notes(found["skipped"]), console)
    for row in found["leaderboard"]:
        console.print(
            f"{100 * row['weight']:.0f} % '{row['member']}': validation loss "
            f"{row['validation_loss']:.3f}, validation accuracy {row['validation_accuracy']:.1f}",
            soft_wrap=True,
        )
    bias = "undefined" if found["bias"] is None else f"{found['bias']:.4f}"
    console.print(
        f"{found['dataset']}, Auto: accuracy {found['accuracy']:.1f}, bias {bias}, low-degree "
        f"accuracy {found['low_degree_accuracy']:.1f}" + (f"; written to {out}" if out else ""),
        soft_wrap=True,
    )
    write_json(json_path, found)


def _write(result: AutoResult, audit: Audit | None, out: Path) -> None:
    """Write the folder, completely or not at all; without an audit no page and no pictures."""
    from .._core.atomic_folders import atomic_directory
    from ..experiments.model_files import outdated_in
    from ..reporting import figures
    from ..reporting.model_choice_section import leaderboard_figure
    from ..reporting.page import report

    with atomic_directory(out, outdated_in(out)) as folder:
        result.write_model(folder)
        result.to_predictions(folder / "predictions.csv")
        result.leaderboard.to_csv(folder / "leaderboard.csv", index=False)
        if audit is None:
            return
        figures.save(figures.side_by_side(result.comparison()), folder / "by_degree.png")
        figures.save(leaderboard_figure(result), folder / "leaderboard.png")
        report(audit, folder / "report.html")


def _show(result: AutoResult, audit: Audit | None, out: Path | None, json_path: str | None) -> None:
    """The leaderboard, why the answer was chosen, and the answer beside the tuned GCN."""
    from ..reporting.comparison_words import gains
    from ..reporting.tables import leaderboard_table, results_table

    console = people(json_path)
    say_notes(result.notes, console)
    console.print(leaderboard_table(result))
    console.print()
    for sentence in result.explanation:
        console.print(sentence)
    console.print()
    console.print(results_table(result.comparison()))
    if audit is not None and result.baseline is not None:
        console.print()
        for sentence in gains(audit, *result.comparison().names):
            console.print(sentence)
    if out is not None:
        say_written(out, console, page=audit is not None)
