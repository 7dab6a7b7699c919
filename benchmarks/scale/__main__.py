"""The command line of the benchmark of scale: ``python -m benchmarks.scale``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rawlsgcn._core.errors import unknown_name
from rawlsgcn._core.memory import memory_limit
from rawlsgcn.cli.base import OneSentence, guarded
from rawlsgcn.cli.options import Device, out_option
from rawlsgcn.cli.outputs import check_outputs, typed_command

from . import page
from .phases import PHASES
from .reading import measure_reading
from .records import Options, measure
from .rivals import NAMES

app = typer.Typer(
    name="benchmarks.scale", cls=OneSentence, pretty_exceptions_enable=False, add_completion=False
)
SIZES = (10**5, 10**6, 10**7, 10**8)


@app.command()
@guarded
def evaluate(
    limit: Annotated[int, typer.Option(min=10**4, help="The largest number of arcs.")] = 10**7,
    smallest: Annotated[int, typer.Option(min=10**4, help="The least number of arcs.")] = 10**5,
    memory: Annotated[str, typer.Option(help="The limit of memory of each command.")] = "8GB",
    count: Annotated[int, typer.Option(min=1, help="The number of shards.")] = 2,
    kills: Annotated[bool, typer.Option(help="Kill each command once and compare.")] = False,
    phases: Annotated[
        str, typer.Option(help="The commands, in this order, separated by commas.")
    ] = ",".join(PHASES),
    rivals: Annotated[
        str, typer.Option(help=f"Of {', '.join(NAMES)}, separated by commas; '' for none.")
    ] = ",".join(NAMES),
    csv_rows: Annotated[
        int, typer.Option(min=0, help="Also read a CSV file of so many edges into shards.")
    ] = 0,
    device: Device = "cpu",
    work: Annotated[
        Path | None, typer.Option(help="Where graphs are written (by default a temporary folder).")
    ] = None,
    fresh: Annotated[bool, typer.Option(help="Measure again what has a record.")] = False,
    tables_only: Annotated[bool, typer.Option(help="Measure nothing, write the page.")] = False,
    out: Annotated[Path, out_option("The folder of the records and the page.")] = Path(
        "results/scale"
    ),
) -> None:
    """Time shard, balance, smooth, train, predict and audit on graphs of rising size.

    A size that has a record is not measured again. 10⁸ arcs need about 20 GB of disk for a while.
    """
    check_outputs(None, folder=out)
    memory_limit(memory)
    names = tuple(name.strip() for name in rivals.split(",") if name.strip())
    chosen = tuple(name.strip() for name in phases.split(",") if name.strip())
    for kind, asked, known in (("rival", names, list(NAMES)), ("command", chosen, list(PHASES))):
        for name in asked:
            if name not in known:
                raise unknown_name(kind, name, known)
    console = Console(stderr=True)
    if not tables_only:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            options = Options(
                out=out,
                work=Path(folder),
                memory=memory,
                device=device,
                count=count,
                kills=kills,
                phases=chosen,
                rivals=names,
                command=typed_command("python -m benchmarks.scale"),
            )

            def say(line: str) -> None:
                console.print(line, highlight=False)

            for arcs in SIZES:
                done = (out / f"{arcs}-{device}.json").exists() and not fresh
                if smallest <= arcs <= limit and not done:
                    measure(arcs, options, say)
            if csv_rows and (fresh or not (out / f"csv-{csv_rows}.json").exists()):
                measure_reading(csv_rows, options, say)
    page.write(out)
    typer.echo(f"wrote {out / 'README.md'}")


if __name__ == "__main__":
    app()
