"""The command for researchers: reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as opt
from .base import command
from .options import split_names
from .outputs import check_outputs, people, typed_command, write_json


@command("effectiveness --datasets cora-ml --out reproduction")
def reproduce(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            help="datasets, effectiveness, heterophily, efficiency, ablation, figures, fair "
            "(every method tuned alike), significance (which differences in bias are more than "
            "chance), or all, the default: all of these."
        ),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Names, separated by commas (default: the paper's seven).")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names, separated by commas (default: all).")
    ] = None,
    seeds: opt.Seeds = 5,
    device: opt.Device = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    storage: Annotated[
        str | None,
        typer.Option(help="URL of the studies, e.g. postgresql://… (default: SQLite in --out)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue where an earlier run stopped.")
    ] = False,
    evaluate: opt.Evaluate = "test",
    quick_baselines: Annotated[
        bool,
        typer.Option(
            "--quick-baselines",
            help="Search a baseline's grid with one seed, then run all seeds at the best values.",
        ),
    ] = False,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Begin nothing new after so many seconds.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the results.")] = Path("reproduction"),
    readme: Annotated[
        Path | None,
        typer.Option(
            help="Run nothing: write the files of --out again, and the main tables between the "
            "marked lines of this file."
        ),
    ] = None,
    data_root: opt.DataRoot = None,
    json_path: opt.Json = None,
) -> None:
    """Run the paper's experiments and compare every cell with its published number."""
    from .. import paper

    if readme is not None:
        from .._core.errors import reading

        with reading(out / "results.json", "results of 'rawlsgcn reproduce'", (readme.name,)):
            paper.redraw(out, readme)
        return
    check_outputs(json_path)
    asked = tuple(parts or ("all",))
    given: dict[str, Any] = {} if datasets is None else {"datasets": split_names(datasets)}
    plan = paper.Plan(
        parts=paper.PARTS if "all" in asked else asked,
        methods=split_names(methods or ""),
        seeds=tuple(range(seeds)),
        quick=quick_baselines,
        evaluate=evaluate,
        **given,
    )
    console = people(json_path)
    if ahead := paper.work_ahead(plan):
        console.print(ahead, style="dim")
    results = paper.reproduce(
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
    failed, left = paper.unfinished(results, plan)
    paper.print_summary(results, failed, left, out, console)
    write_json(json_path, results)
    if failed:
        raise typer.Exit(1)
