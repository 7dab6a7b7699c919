"""The command for researchers: reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .base import check_outputs, command, people, split_names, typed_command, write_json
from .options import DataRoot, Device, Evaluate, Json, Seeds


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
        from .._core.errors import reading
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
