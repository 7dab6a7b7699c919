"""The command line of the evaluation of ``auto``: ``python -m benchmarks.auto``."""

from __future__ import annotations

import os

# Threads that spin slow each other down where the machine has other work; before torch is loaded.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rawlsgcn._core.errors import RawlsError, unknown_name
from rawlsgcn._core.machine import pick_device
from rawlsgcn.cli.base import OneSentence, guarded
from rawlsgcn.cli.options import DataRoot, Device, out_option
from rawlsgcn.cli.outputs import check_outputs, typed_command
from rawlsgcn.graphs.catalog import CATALOG
from rawlsgcn.graphs.catalog import datasets as known_datasets

from . import page
from .records import AUTO, Options, Task
from .times import time_commands
from .training import RIVALS
from .workers import run_tasks

app = typer.Typer(
    name="benchmarks.auto", cls=OneSentence, pretty_exceptions_enable=False, add_completion=False
)


@app.command()
@guarded
def evaluate(
    datasets: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(CATALOG),
    splits: Annotated[int, typer.Option(min=1, help="Number of splits of each graph.")] = 10,
    first_split: Annotated[int, typer.Option(min=0, help="Begin with this split.")] = 0,
    rivals: Annotated[
        str, typer.Option(help="Of gcn, appnp, graphsage, gat, separated by commas; '' for none.")
    ] = ",".join(RIVALS),
    without_auto: Annotated[bool, typer.Option(help="Train the rivals only.")] = False,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of each rival (default: its grid of 96).")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run of a rival.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The seed of auto and of the runs.")] = 0,
    device: Device = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that train at the same time.")] = 1,
    fresh: Annotated[bool, typer.Option(help="Train again what is finished already.")] = False,
    times: Annotated[
        bool, typer.Option(help="Time the command 'rawlsgcn auto' on each graph, nothing else.")
    ] = False,
    tables_only: Annotated[bool, typer.Option(help="Train nothing, write the tables.")] = False,
    data_root: DataRoot = None,
    out: Annotated[Path, out_option("The folder of the records and tables.")] = Path(
        "results/auto"
    ),
) -> None:
    """Compare auto with tuned rivals over several splits; an interrupted run can be resumed.

    Each graph, split and model has a record in OUT/runs. A record that exists is not computed
    again. The tables are written from all records at the end.
    """
    check_outputs(None, folder=out)
    if not tables_only:
        options = Options(
            out=out,
            device=pick_device(device),
            runs=runs,
            epochs=epochs,
            seed=seed,
            root=data_root,
            command=typed_command("python -m benchmarks.auto"),
        )
        graphs = _names("dataset", datasets, known_datasets())
        console = Console(stderr=True)
        if times:
            time_commands(graphs, options, fresh, console)
            page.write(out)
            typer.echo(f"wrote {out / 'README.md'}")
            return
        models = [*([] if without_auto else [AUTO]), *_names("rival", rivals, RIVALS)]
        # Split after split, so that an interrupted run has the same splits of all graphs.
        tasks = [
            Task(graph, split, model)
            for split in range(first_split, first_split + splits)
            for graph in graphs
            for model in models
        ]
        left = [task for task in tasks if fresh or not task.file(out).exists()]
        if len(left) < len(tasks):
            console.print(f"{len(tasks) - len(left)} of {len(tasks)} records exist already")
        try:
            run_tasks(left, options, jobs, console)
        finally:
            # Also after Ctrl-C or an error: the tables show what is finished.
            page.write(out)
    else:
        page.write(out)
    typer.echo(f"wrote {out / 'README.md'}")


def _names(kind: str, text: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    if len(set(names)) < len(names):
        raise RawlsError(f"a {kind} appears twice in '{text}': remove one")
    return names


if __name__ == "__main__":
    app()
