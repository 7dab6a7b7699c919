"""The commands for researchers: bench and reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .base import (
    check_outputs,
    command,
    people,
    split_names,
    typed_command,
    write_json,
)
from .options import (
    DataRoot,
    Device,
    Evaluate,
    Json,
    Seeds,
    out_option,
)


@command
def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="training, methods, balance, scaling, sampling (else all)."),
    ] = None,
    datasets: Annotated[
        str, typer.Option(help="Names, separated by commas; 'synthetic' needs no files.")
    ] = "amazon-photo,citeseer,coauthor-cs,coauthor-physics",
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
    from ..api import pick_device
    from ..bench import report, suite
    from ..errors import unknown_name
    from ..graphs.catalogue import NAMES

    chosen = list(parts or suite.PARTS)
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    for kind, asked, known in (("part", chosen, suite.PARTS), ("dataset", names, NAMES)):
        for name in asked:
            if name not in known:
                raise unknown_name(kind, name, known)
    check_outputs(json_path, folder=out)
    console = people(json_path)
    from rich.console import Console

    with Console(stderr=True).status("measuring") as status:
        results = suite.run(
            chosen,
            names,
            pick_device(device),
            repeats=repeats,
            limit=limit,
            root=data_root,
            command=typed_command(),
            tell=lambda what: status.update(f"measuring {what}"),
        )
    if out is not None:
        report.write(results, out)
    console.print(report.table(results["figures"]))
    write_json(json_path, results)


@command
def reproduce(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="datasets, effectiveness, heterophily, efficiency, ablation, figures, fair, all."
        ),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Names, separated by commas (else the paper's seven).")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names, separated by commas (else all there are).")
    ] = None,
    seeds: Seeds = 5,
    device: Device = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    storage: Annotated[
        str | None,
        typer.Option(help="URL of the studies, e.g. postgresql://… (else SQLite in --out)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run stopped.")
    ] = False,
    evaluate: Evaluate = "test",
    quick_baselines: Annotated[
        bool,
        typer.Option(
            "--quick-baselines",
            help="Search a baseline's grid with one seed, then run all seeds at what was found.",
        ),
    ] = False,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Begin nothing new after so many seconds.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the results.")] = Path("reproduction"),
    readme: Annotated[
        Path | None,
        typer.Option(
            help="Run nothing: draw --out again, and its tables into this file's place for them."
        ),
    ] = None,
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Run the paper's experiments and hold every cell against its printed number."""
    if readme is not None:
        from ..errors import reading
        from ..paper.output import RESULTS, redraw
        from ..paper.readme import draw

        with reading(out / RESULTS, "results of 'rawlsgcn reproduce'", beside=(readme.name,)):
            draw(redraw(out), readme)
        return
    from ..paper.plan import PARTS, Plan
    from ..paper.reproduce import reproduce as run_plan
    from ..paper.reproduce import undone
    from ..paper.summary import printed_summary

    check_outputs(json_path)
    asked = tuple(parts or ("all",))
    given: dict[str, Any] = {} if datasets is None else {"datasets": split_names(datasets)}
    plan = Plan(
        parts=PARTS if "all" in asked else asked,
        methods=split_names(methods or ""),
        seeds=tuple(range(seeds)),
        quick=quick_baselines,
        evaluate=evaluate,
        **given,
    )
    results = run_plan(
        plan,
        out,
        storage=storage,
        resume=resume,
        device=device,
        workers=workers,
        budget=budget,
        root=data_root,
        command=typed_command(),
    )
    failed, left = undone(results, plan)
    printed_summary(results, failed, left, out, people(json_path))
    write_json(json_path, results)
    if failed:
        raise typer.Exit(1)
