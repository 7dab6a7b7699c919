"""The command for predictions of any model: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .._core.errors import RawlsError
from . import options as opt
from .base import command, require_one_process
from .outputs import check_outputs, graph_options, people, say_notes, typed_command, write_json


@command(
    "--graph graph.npz --predictions predictions.csv --out report.html",
    "--dataset cora-ml --predictions a.csv --predictions b.csv",
)
def audit(
    context: typer.Context,
    predictions: Annotated[
        list[Path],
        typer.Option(
            help="Node ids with classes, probabilities or logits: .csv, .tsv, .parquet or .npz; "
            "may be repeated, one file a model."
        ),
    ],
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    labels: opt.Labels = None,
    shards: opt.Shards = None,
    by: Annotated[
        str,
        typer.Option(help="degree, in-degree, pagerank, core, or a file of node ids and values."),
    ] = "degree",
    bins: Annotated[
        str | None,
        typer.Option(help="degree (every value alone), quantile:K, or edges:1,3,10 of your own."),
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option(
            help="test; all: every labeled node outside training and validation; or labeled: "
            "those too (by default test where the graph or the predictions have a split)."
        ),
    ] = None,
    scores: Annotated[
        str, typer.Option(help="auto, probabilities, logits or classes: what the files hold.")
    ] = "auto",
    resamples: Annotated[
        int, typer.Option(min=100, help="Draws of every bootstrap and permutation test.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of those draws.")] = 0,
    data_root: opt.DataRoot = None,
    out: Annotated[Path | None, opt.out_option("Write the report (.html) here.")] = None,
    json_path: opt.Json = None,
) -> None:
    """Audit predictions of any model by degree: who is worst off, and is it chance?"""
    from .._core.atomic_files import check_page
    from ..evaluation.node_centralities import BUILT_IN
    from ..experiments.auditing.audit_predictions import audit as audit_predictions
    from ..graphs.readers.read_graph import read_raw_graph
    from ..graphs.shards.shards import Shards
    from ..reporting.audit_verdict import verdict
    from ..reporting.progress import spinner
    from ..reporting.tables import audit_table

    column = None if by in BUILT_IN else by
    check_outputs(json_path, file=out, inputs=[*predictions, graph, labels, column])
    if out is not None:
        check_page(out)
    data: Any
    with spinner("auditing"):
        if shards is not None:
            if dataset is not None or graph is not None or labels is not None:
                raise RawlsError("--shards has the whole graph: leave out --dataset and files")
            require_one_process("audit")
            data = Shards(shards)
        elif graph is not None and dataset is None:
            data = read_raw_graph(graph, labels=labels)  # with the directions of its edges
        else:
            data = opt.read_graph(dataset, graph, labels=labels, data_root=data_root)
        made = audit_predictions(
            data,
            list(predictions),
            by=by,
            bins=bins,
            evaluate=evaluate,
            scores=scores,
            resamples=resamples,
            seed=seed,
            command=typed_command(),
            graph_options=graph_options(context),
        )
    if out is not None:
        made.to_html(out)
    console = people(json_path)
    say_notes(made.notes, console)
    words = verdict(made)
    console.print(words.headline, style="bold")
    console.print(audit_table(made))
    for line in words.lines[1:]:
        console.print(line)
    if out is not None:
        console.print(f"Page: {out}", soft_wrap=True)
    if json_path is not None:
        write_json(json_path, made.to_dict())
