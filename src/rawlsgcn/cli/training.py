"""The commands that train: demo, datasets, train, compare and tune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core.errors import RawlsError
from ..methods import MAIN_METHODS, find_method
from .base import command, naming, parse_grid, parse_settings, read_graph
from .options import (
    COMPARED,
    DataRoot,
    Dataset,
    Device,
    Engine,
    Epochs,
    Evaluate,
    Features,
    Graph,
    Json,
    Labels,
    Lr,
    Memory,
    MethodName,
    MethodNames,
    Normalization,
    Seeds,
    Set,
    Shards,
    Split,
    TrainEngine,
    out_option,
)
from .outputs import (
    audited,
    check_outputs,
    graph_options,
    people,
    say_notes,
    say_written,
    show,
    typed_command,
    write_json,
)
from .row_training import train_on_rows
from .shards import (
    given_options,
    require_one_process,
    require_options,
    say_choice,
    train_on_samples,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data


@command("", "--nodes 500 --out demo")
def demo(
    out: Annotated[Path, out_option("Where the page and the picture go.")] = Path("out"),
    nodes: Annotated[int, typer.Option(min=120, help="Size of the synthetic graph.")] = 3000,
    seeds: Seeds = 5,
    device: Device = "auto",
    json_path: Json = None,
) -> None:
    """Compare GCN and both RawlsGCN methods on the embedded synthetic graph."""
    from ..graphs import synthetic

    check_outputs(json_path, folder=out)
    names = list(MAIN_METHODS)
    _compare(synthetic(nodes), names, out, json_path, "rawlsgcn demo", {}, seeds, device)


@command("", "--data-root data --json datasets.json")
def datasets(data_root: DataRoot = None, json_path: Json = None) -> None:
    """List the named graphs, whether they are on disk, and their statistics."""
    from ..graphs.catalog import CATALOG, SYNTHETIC
    from ..graphs.catalog import data_root as root_folder
    from ..reporting.progress import progress
    from ..reporting.tables import datasets_table

    check_outputs(json_path)
    entries = [(entry.name, entry.title, entry.on_disk(data_root)) for entry in CATALOG.values()]
    entries.append((SYNTHETIC, "Synthetic (made on the spot)", True))
    rows: list[dict[str, Any]] = []
    with progress("reading the graphs") as tell:
        for count, (name, title, on_disk) in enumerate(entries):
            row = {"name": name, "title": title, "on_disk": on_disk}
            if on_disk:
                from ..graphs import load, statistics

                tell(count, len(entries), f"reading {name}")
                try:
                    row |= statistics(load(name, root=data_root, sparse=True)).to_dict()
                except RawlsError as error:
                    row["damaged"] = str(error)
            rows.append(row)
    console = people(json_path)
    say_notes([row["damaged"] for row in rows if "damaged" in row], console)
    console.print(datasets_table(rows))
    console.print(f"Looked in {root_folder(data_root)}", style="dim", markup=False, highlight=False)
    write_json(json_path, rows)


#: The heading in --help of the options for training on samples and on smoothed rows.
_SAMPLES = "Training in steps (with --num-neighbors or --shards)"


@command(
    "--dataset cora-ml --method rawlsgcn-graph --lr 0.05 --out model",
    "--graph edges.csv --features features.csv --labels labels.csv",
)
def train(
    context: typer.Context,
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    shards: Shards = None,
    method: MethodName = "rawlsgcn-graph",
    lr: Lr = None,
    epochs: Epochs = None,
    normalization: Normalization = None,
    settings: Set = None,
    seeds: Seeds = 5,
    split: Split = None,
    evaluate: Evaluate = "test",
    device: Device = "auto",
    engine: TrainEngine = "auto",
    memory: Memory = None,
    data_root: DataRoot = None,
    out: Annotated[
        Path | None,
        out_option("Keep the model, metrics, predictions, a page and a picture here."),
    ] = None,
    json_path: Json = None,
    num_neighbors: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_SAMPLES,
            help="Neighbors drawn in each layer, outermost first; -1 for all (10,10 with "
            "--shards).",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=_SAMPLES,
            help="Training nodes of a step, shared by all processes (1024 on samples, 4096 on "
            "smoothed rows).",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**63 - 1,
            rich_help_panel=_SAMPLES,
            help="Decides weights, order and draws.",
        ),
    ] = 0,
    workers: Annotated[
        int,
        typer.Option(min=0, rich_help_panel=_SAMPLES, help="Further processes that draw ahead."),
    ] = 0,
    average: Annotated[
        float,
        typer.Option(
            rich_help_panel=_SAMPLES,
            help="Share of the steps, the last ones, whose mean weights are kept.",
        ),
    ] = 0.1,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            min=0,
            rich_help_panel=_SAMPLES,
            help="Steps between checkpoints (0: after epochs alone).",
        ),
    ] = 0,
) -> None:
    """Train one method on a graph and evaluate it by degree.

    The engine is chosen by the size of the graph, the method and the memory. With --shards it is
    trained on smoothed rows or on sampled neighborhoods, also by several processes under
    torchrun, and goes on from the checkpoint in --out if there is one.
    """
    from .._core.memory import memory_limit
    from ..experiments.fitting import fit
    from ..reporting.progress import progress
    from ..training.engine_choice import EngineChoice, GraphSize, choose_engine

    changes = parse_settings(settings, lr=lr, epochs=epochs, normalization=normalization)
    given, chosen, limit = given_options(context), find_method(method), memory_limit(memory)
    names = ("dataset", "graph", "features", "labels", "split", "data_root")
    files = {name: context.params[name] for name in names}
    in_steps = {"seed": seed, "average": average, "checkpoint_every": checkpoint_every}
    if shards is not None and any(files[name] for name in names[:-1]):
        raise RawlsError("--shards has the whole graph: leave out --dataset, --split and files")
    if num_neighbors is not None and engine not in ("auto", "sampled"):
        raise RawlsError(f"--num-neighbors is for the engine 'sampled', not '{engine}'")
    data = None
    if num_neighbors is not None or (engine == "sampled" and shards is None):
        choice = EngineChoice("sampled", "you said so")
    else:
        configured = chosen.configure(changes)  # an error before a graph is read
        if shards is not None:
            from ..graphs.shards import Shards as ShardFolder

            opened = ShardFolder(shards)
            size = GraphSize.of_shards(opened)
        else:
            require_options(given - {"seeds", "evaluate"}, "the whole graph", in_shards=False)
            require_one_process("train", "--num-neighbors or --shards")
            check_outputs(json_path, folder=out, inputs=[graph, features, labels])
            data = read_graph(**files)
            size = GraphSize.of(data)
        choice = choose_engine(chosen, configured, size, limit, engine=engine, runs=seeds)
    if choice.reason != "you said so":
        say_choice(choice.trained_on, choice.reason, json_path)
    require_options(given, choice.trained_on)
    if choice.engine == "sampled":
        train_on_samples(
            method,
            changes,
            num_neighbors or "10,10",
            files,
            shards,
            out,
            json_path,
            device,
            data=data,
            batch_size=batch_size or 1024,
            workers=workers,
            **in_steps,
        )
        return
    if choice.engine == "smoothed":
        named = configured.epochs if "epochs" in changes else None
        train_on_rows(
            opened, configured, named, out, json_path, device, limit, batch_size, **in_steps
        )
        return
    if shards is not None:
        from ..graphs.shard_graph import graph_of_shards

        require_one_process(f"train --method {method}")
        check_outputs(json_path, folder=out, shards=shards)
        data = graph_of_shards(opened)
    with progress("training") as tell:
        result = fit(
            data,
            method,
            seeds=seeds,
            device=device,
            engine=choice.engine,
            evaluate=evaluate,
            progress=tell,
            **changes,
        )
    audit = audited([result], command=typed_command(), graph_options=graph_options(context))
    if out is not None:
        from .._core.atomic_folders import atomic_directory
        from ..experiments.saved_models import outdated_in
        from ..reporting import figures
        from ..reporting.page import report

        with atomic_directory(out, outdated_in(out)) as folder:
            result.write_model(folder)
            result.to_predictions(folder / "predictions.csv")
            figures.save(figures.by_degree(result), folder / "by_degree.png")
            report(audit or result, folder / "report.html", command=typed_command())
    show([result], audit, json_path)
    if out is not None:
        say_written(out, people(json_path))
    write_json(json_path, result.to_dict())


@command("--dataset cora-ml --out out", "--dataset cora-ml --methods gcn,rawlsgcn-graph --tune")
def compare(
    context: typer.Context,
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    methods: MethodNames = COMPARED,
    lr: Lr = None,
    epochs: Epochs = None,
    normalization: Normalization = None,
    settings: Set = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Train each method at the learning rate and weight decay that are best on the "
            "validation nodes (a given rate or decay is not searched).",
        ),
    ] = False,
    seeds: Seeds = 5,
    split: Split = None,
    evaluate: Evaluate = "test",
    device: Device = "auto",
    engine: Engine = "auto",
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, out_option("Write a page, the figures, predictions and the results here.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Train several methods on one graph and compare them."""
    from ..experiments.comparing import configure_all
    from ..graphs.splits import evaluate_on

    names = [name.strip() for name in methods.split(",") if name.strip()]
    changes = parse_settings(settings, lr=lr, epochs=epochs, normalization=normalization)
    configure_all([find_method(name) for name in names], changes)
    check_outputs(json_path, folder=out, inputs=[graph, features, labels])
    data = evaluate_on(read_graph(dataset, graph, features, labels, split, data_root), evaluate)
    how = {"engine": engine, "tune": tune, **changes}
    options = graph_options(context)
    _compare(data, names, out, json_path, typed_command(), options, seeds, device, **how)


def _compare(
    data: Data,
    names: list[str],
    out: Path | None,
    json_path: str | None,
    said: str,
    graph: dict[str, str],
    seeds: int,
    device: str,
    **how: Any,
) -> None:
    from ..experiments.comparing import compare as compare_methods
    from ..reporting.progress import progress

    with progress("training") as tell:
        results = compare_methods(data, names, seeds=seeds, device=device, progress=tell, **how)
    figures_json = [result.to_dict() for result in results]
    audit = audited(results, command=said, graph_options=graph)
    if out is not None:
        from .._core.atomic_folders import atomic_directory
        from ..reporting import figures
        from ..reporting.figures import accuracy_bias_plot
        from ..reporting.page import report

        with atomic_directory(out) as folder, progress("drawing") as tell:
            tell(0, len(results) + 3)
            for count, result in enumerate(results, start=1):
                picture = folder / f"by_degree-{result.method}.png"
                figures.save(figures.by_degree(result), picture)
                if len(result.diverged) < len(result.seeds):
                    result.to_predictions(folder / f"predictions-{result.method}.csv")
                tell(count, len(results) + 3)
            figures.save(figures.degrees(results[0].graph), folder / "degrees.png")
            figures.save(figures.side_by_side(results), folder / "side_by_side.png")
            figures.save(accuracy_bias_plot(results), folder / "accuracy_bias.png")
            report(audit or results, folder / "report.html", command=said)
            (folder / "results.json").write_text(json.dumps(figures_json, indent=2) + "\n")
    show(results, audit, json_path)
    if out is not None:
        where = f"Page: {out / 'report.html'}   Picture: {out / 'side_by_side.png'}"
        people(json_path).print(where, markup=False, highlight=False)
    write_json(json_path, figures_json)


@command(
    "--dataset cora-ml --method gcn --out model",
    "--dataset cora-ml --grid lr=0.05,0.01 --grid weight_decay=5e-4,0",
)
def tune(
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    method: MethodName = "rawlsgcn-graph",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            help="Values to try, as name=a,b,c; may be repeated (by default learning rates and "
            "weight decays, without those that --set gives)."
        ),
    ] = None,
    normalization: Normalization = None,
    settings: Set = None,
    seeds: Seeds = 5,
    split: Split = None,
    device: Device = "auto",
    engine: Engine = "auto",
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, out_option("Keep the chosen model, its metrics and all trials here.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Search a grid of settings, all runs at once, and choose by validation accuracy."""
    from ..experiments.tuning import tune as tune_method
    from ..reporting.progress import progress
    from ..reporting.tables import tuning_table

    changes = parse_settings(settings, normalization=normalization)
    chosen = find_method(method)
    chosen.configure(changes)
    values = parse_grid(grid)
    for name, each in (values or {}).items():
        for value in each:
            with naming(f"--grid {name}={','.join(each)}"):
                chosen.configure({**changes, name: value})
    check_outputs(json_path, folder=out, inputs=[graph, features, labels])
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
        from ..experiments.saved_models import outdated_in

        with atomic_directory(out, outdated_in(out)) as folder:
            tuning.best.write_model(folder)
            text = json.dumps(tuning.to_dict(), indent=2, allow_nan=False) + "\n"
            (folder / "tuning.json").write_text(text, encoding="utf-8")
    console = people(json_path)
    say_notes(tuning.best.notes, console)
    console.print(tuning_table(tuning))
    took = f"{len(tuning.trials) * seeds} runs in {sum(tuning.seconds.values()):.1f} s"
    kept = "" if out is None else f"; the chosen model is in {out}"
    console.print(f"{took}{kept}", markup=False, highlight=False)
    write_json(json_path, tuning.to_dict())
