"""The commands that compare methods or settings: demo, compare and tune."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from ..methods import MAIN_METHODS, find_method
from . import options as opt
from . import outputs
from .base import command
from .options import naming, parse_grid, parse_settings, read_graph, split_names

if TYPE_CHECKING:
    from torch_geometric.data import Data


@command("", "--nodes 500 --out demo")
def demo(
    out: Annotated[Path, opt.out_option("Where the page and the picture go.")] = Path("out"),
    nodes: Annotated[int, typer.Option(min=120, help="Size of the synthetic graph.")] = 3000,
    seeds: opt.Seeds = 5,
    device: opt.Device = "auto",
    json_path: opt.Json = None,
) -> None:
    """Compare GCN and both RawlsGCN methods on the embedded synthetic graph."""
    from ..graphs import synthetic

    outputs.check_outputs(json_path, folder=out)
    how = {"command": "rawlsgcn demo", "graph_options": {}}
    _compare(synthetic(nodes), MAIN_METHODS, out, json_path, how, seeds=seeds, device=device)


@command("--dataset cora-ml --out out", "--dataset cora-ml --methods gcn,rawlsgcn-graph --tune")
def compare(
    context: typer.Context,
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    methods: opt.MethodNames = opt.COMPARED,
    lr: opt.Lr = None,
    epochs: opt.Epochs = None,
    normalization: opt.Normalization = None,
    settings: opt.Set = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Train each method at the learning rate and weight decay that are best on the "
            "validation nodes (a given rate or decay is not searched).",
        ),
    ] = False,
    seeds: opt.Seeds = 5,
    split: opt.Split = None,
    evaluate: opt.Evaluate = "test",
    device: opt.Device = "auto",
    engine: opt.Engine = "auto",
    data_root: opt.DataRoot = None,
    out: Annotated[
        Path | None, opt.out_option("Write a page, the figures, predictions and the results here.")
    ] = None,
    json_path: opt.Json = None,
) -> None:
    """Train several methods on one graph and compare them."""
    from ..experiments.comparison import configure_all
    from ..graphs.splits import evaluate_on

    names = split_names(methods)
    changes = parse_settings(settings, lr=lr, epochs=epochs, normalization=normalization)
    configure_all([find_method(name) for name in names], changes)
    outputs.check_outputs(json_path, folder=out, inputs=[graph, features, labels])
    data = evaluate_on(read_graph(dataset, graph, features, labels, split, data_root), evaluate)
    how = {"command": outputs.typed_command(), "graph_options": outputs.graph_options(context)}
    changes |= {"seeds": seeds, "device": device, "engine": engine, "tune": tune}
    _compare(data, names, out, json_path, how, **changes)


def _compare(
    data: Data,
    names: Sequence[str],
    out: Path | None,
    json_path: str | None,
    how: dict[str, Any],
    **settings: Any,
) -> None:
    """Compare methods; the page shows ``how``: the command and the options of the graph."""
    from ..experiments.comparison import compare as compare_methods
    from ..reporting import figures
    from ..reporting.progress import progress

    with progress("training") as tell:
        results = compare_methods(data, names, progress=tell, **settings)
    figures_json = [result.to_dict() for result in results]

    def write(folder: Path) -> None:
        for result in results:
            figures.save(figures.by_degree(result), folder / f"by_degree-{result.method}.png")
            if len(result.diverged) < len(result.seeds):
                result.to_predictions(folder / f"predictions-{result.method}.csv")
        figures.save(figures.degrees(results[0].graph), folder / "degrees.png")
        figures.save(figures.side_by_side(results), folder / "side_by_side.png")
        figures.save(results.accuracy_bias_plot(), folder / "accuracy_bias.png")
        (folder / "results.json").write_text(json.dumps(figures_json, indent=2) + "\n")

    outputs.present(results, out, json_path, write, **how)
    if out is not None:
        where = f"Page: {out / 'report.html'}   Picture: {out / 'side_by_side.png'}"
        outputs.people(json_path).print(where)
    outputs.write_json(json_path, figures_json)


@command(
    "--dataset cora-ml --method gcn --out model",
    "--dataset cora-ml --grid lr=0.05,0.01 --grid weight_decay=5e-4,0",
)
def tune(
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    method: opt.MethodName = "rawlsgcn-graph",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Values to try, as name=a,b,c; may be repeated (by default learning rates and "
            "weight decays, without those that --set gives)."
        ),
    ] = None,
    epochs: opt.Epochs = None,
    normalization: opt.Normalization = None,
    settings: opt.Set = None,
    seeds: opt.Seeds = 5,
    split: opt.Split = None,
    device: opt.Device = "auto",
    engine: opt.Engine = "auto",
    data_root: opt.DataRoot = None,
    out: Annotated[
        Path | None, opt.out_option("Keep the chosen model, its metrics and all trials here.")
    ] = None,
    json_path: opt.Json = None,
) -> None:
    """Search a grid of settings, all runs at once, and choose by validation accuracy."""
    from ..experiments.tuning import tune as tune_method
    from ..reporting.progress import progress
    from ..reporting.tables import tuning_table

    changes = parse_settings(settings, epochs=epochs, normalization=normalization)
    for name, value in changes.items():
        if "," in str(value):
            raise RawlsError(f"--set gives one value: to try several, --grid {name}={value}")
    chosen = find_method(method)
    chosen.configure(changes)
    values = parse_grid(grid)
    for name, each in (values or {}).items():
        for value in each:
            with naming(f"--grid {name}={','.join(each)}"):
                chosen.configure({**changes, name: value})
    outputs.check_outputs(json_path, folder=out, inputs=[graph, features, labels])
    data = read_graph(dataset, graph, features, labels, split, data_root)
    with progress("training") as tell:
        tuning = tune_method(
            data,
            method,
            values,
            seeds=seeds,
            device=device,
            engine=engine,
            progress=tell,
            **changes,
        )
    if out is not None:
        from .._core.atomic_folders import atomic_directory
        from ..experiments.model_files import outdated_in

        with atomic_directory(out, outdated_in(out)) as folder:
            tuning.best.write_model(folder)
            text = json.dumps(tuning.to_dict(), indent=2, allow_nan=False) + "\n"
            (folder / "tuning.json").write_text(text, encoding="utf-8")
    console = outputs.people(json_path)
    outputs.say_notes(tuning.best.notes, console)
    console.print(tuning_table(tuning))
    took = f"{len(tuning.trials) * seeds} runs in {sum(tuning.seconds.values()):.1f} s"
    kept = "" if out is None else f"; the chosen model is in {out}"
    console.print(f"{took}{kept}")
    outputs.write_json(json_path, tuning.to_dict())
