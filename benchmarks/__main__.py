"""The command line of the benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rawlsgcn._core.errors import unknown_name
from rawlsgcn._core.machine import pick_device
from rawlsgcn.cli.base import OneSentence, guarded
from rawlsgcn.cli.options import DataRoot, Device, Json, out_option
from rawlsgcn.cli.outputs import check_outputs, people, typed_command, write_json
from rawlsgcn.graphs.catalog import datasets as known_datasets

from . import report, suite

app = typer.Typer(
    name="benchmarks", cls=OneSentence, pretty_exceptions_enable=False, add_completion=False
)


@app.command()
@guarded
def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help=f"{', '.join(suite.PARTS)} (default: all)."),
    ] = None,
    datasets: Annotated[
        str, typer.Option(help="Names, separated by commas; 'synthetic' needs no files.")
    ] = ",".join(suite.DATASETS),
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions of each timing.")] = 3,
    limit: Annotated[int, typer.Option(help="Largest size of the scaling tables.")] = 10**8,
    device: Device = "cpu",
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, out_option("Write RESULTS.md, the figures and a plot here.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Measure speed and memory, as ratios against named rivals in the same run."""
    chosen = list(parts or suite.PARTS)
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    for kind, asked, known in (("part", chosen, suite.PARTS), ("dataset", names, known_datasets())):
        for name in asked:
            if name not in known:
                raise unknown_name(kind, name, known)
    check_outputs(json_path, folder=out)
    console = people(json_path)
    with Console(stderr=True).status("measuring") as status:
        results = suite.run(
            chosen,
            names,
            pick_device(device),
            repeats=repeats,
            limit=limit,
            root=data_root,
            command=typed_command("python -m benchmarks"),
            progress=lambda step: status.update(f"measuring {step}"),
        )
    if out is not None:
        report.write(results, out)
    console.print(report.table(results["figures"]))
    write_json(json_path, results)


if __name__ == "__main__":
    app()
