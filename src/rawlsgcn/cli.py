"""The command line: parse, call, print. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from . import __version__
from .cli_errors import OneSentence, guarded
from .cli_options import (
    DataRoot,
    Dataset,
    Device,
    Engine,
    Epochs,
    Features,
    Graph,
    Json,
    Labels,
    Lr,
    MethodName,
    MethodNames,
    Normalisation,
    Seeds,
    Set,
    Split,
    out_option,
)
from .errors import RawlsError

if TYPE_CHECKING:
    from rich.console import Console
    from torch_geometric.data import Data

    from .result import Result

# Torch's threads spin while they wait for each other, which on a machine with other work to do
# costs several times what it saves. It must be said before torch is loaded; the user's word wins.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

app = typer.Typer(
    name="rawlsgcn",
    cls=OneSentence,
    help="Degree-fair graph neural networks: train them, compare them, see who is worst off.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

F = TypeVar("F", bound=Callable[..., None])


def command(function: F) -> F:
    """Register a command whose user errors become one sentence and exit status 2."""
    app.command()(guarded(function))
    return function


def _graph(
    dataset: str | None,
    graph: Path | None,
    features: Path | None = None,
    labels: Path | None = None,
    split: str | None = None,
    data_root: Path | None = None,
    **needs: bool,
) -> Data:
    from .graphs import load, read

    if (dataset is None) == (graph is None):
        raise RawlsError("name one graph: either --dataset NAME or --graph FILE")
    if dataset is not None:
        if features is not None or labels is not None:
            raise RawlsError("--features and --labels go with --graph, not with --dataset")
        return load(dataset, root=data_root, split=split)
    assert graph is not None
    return read(graph, features=features, labels=labels, split=split, **needs)


def _settings(pairs: Sequence[str] | None, **given: Any) -> dict[str, Any]:
    settings = {name: value for name, value in given.items() if value is not None}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise RawlsError(f"--set takes name=value, for example --set hidden=32, not '{pair}'")
        settings[name] = value
    return settings


def _check_outputs(
    json_path: str | None, *, folder: Path | None = None, file: Path | None = None
) -> None:
    """Tell before the work, not after it, that its result could not be written."""
    from .files import check_file, check_folder

    if folder is not None:
        check_folder(folder)
    for path in (file, json_path):
        if path not in (None, "-"):
            check_file(path)


def _people(json_path: str | None) -> Console:
    """Where people read: stdout, or stderr when stdout carries the JSON."""
    from rich.console import Console

    return Console(stderr=json_path == "-")


def _write_json(path: str | None, value: Any) -> None:
    if path is None:
        return
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from .files import atomic_file

    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _show(results: list[Result], json_path: str | None) -> None:
    from .reporting.table import results_table

    console = _people(json_path)
    _say_notes([note for result in results for note in result.notes], console)
    console.print(results_table(results))


def _say_notes(notes: Sequence[str], console: Console) -> None:
    for note in dict.fromkeys(notes):
        console.print(f"Note: {note}", style="yellow", markup=False, highlight=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rawlsgcn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before a command."""


@command
def demo(
    out: Annotated[Path, out_option("Where the page and the picture go.")] = Path("out"),
    nodes: Annotated[int, typer.Option(min=120, help="Size of the synthetic graph.")] = 3000,
    seeds: Seeds = 5,
    device: Device = "auto",
    json_path: Json = None,
) -> None:
    """Compare GCN and both RawlsGCN methods on the embedded synthetic graph."""
    from .graphs import synthetic

    _check_outputs(json_path, folder=out)
    _compare(synthetic(nodes), list(_MAIN), out, json_path, "rawlsgcn demo", seeds, device)


@command
def datasets(data_root: DataRoot = None, json_path: Json = None) -> None:
    """List the named graphs, whether they are on disk, and their statistics."""
    from .graphs.catalogue import CATALOGUE, SYNTHETIC
    from .graphs.catalogue import data_root as root_folder
    from .reporting.progress import progress
    from .reporting.table import datasets_table

    _check_outputs(json_path)
    entries = [(entry.name, entry.title, entry.on_disk(data_root)) for entry in CATALOGUE.values()]
    entries.append((SYNTHETIC, "Synthetic (made on the spot)", True))
    rows: list[dict[str, Any]] = []
    with progress("reading the graphs") as tell:
        for count, (name, title, on_disk) in enumerate(entries):
            row = {"name": name, "title": title, "on_disk": on_disk}
            if on_disk:
                from .graphs import load, statistics

                tell(count, len(entries), f"reading {name}")
                try:
                    row |= statistics(load(name, root=data_root)).to_dict()
                except RawlsError as error:
                    row["damaged"] = str(error)
            rows.append(row)
    console = _people(json_path)
    _say_notes([row["damaged"] for row in rows if "damaged" in row], console)
    console.print(datasets_table(rows))
    console.print(f"Looked in {root_folder(data_root)}", style="dim", markup=False, highlight=False)
    _write_json(json_path, rows)


@command
def train(
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    method: MethodName = "rawlsgcn-graph",
    lr: Lr = None,
    epochs: Epochs = None,
    normalisation: Normalisation = None,
    settings: Set = None,
    seeds: Seeds = 5,
    split: Split = None,
    device: Device = "auto",
    engine: Engine = "auto",
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, out_option("Keep the model, its metrics, a page and a picture here.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Train one method on a graph and judge it by degree."""
    from .api import fit
    from .methods import find, with_changes
    from .reporting.progress import progress

    changes = _settings(settings, lr=lr, epochs=epochs, normalisation=normalisation)
    with_changes(find(method).defaults, changes)  # a wrong name is told before a graph is read
    _check_outputs(json_path, folder=out)
    data = _graph(dataset, graph, features, labels, split, data_root)
    with progress("training") as tell:
        result = fit(
            data, method, seeds=seeds, device=device, engine=engine, progress=tell, **changes
        )
    if out is not None:
        from .files import atomic_directory
        from .models import write_model
        from .reporting import figures
        from .reporting.page import report

        with atomic_directory(out) as folder:
            write_model(result, folder)
            figures.save(figures.by_degree(result), folder / "by_degree.png")
            report(result, folder / "report.html", command=_command())
    _show([result], json_path)
    if out is not None:
        _people(json_path).print(f"Written to {out}", markup=False, highlight=False)
    _write_json(json_path, result.to_dict())


_MAIN = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad")
_COMPARED = ",".join(_MAIN)


@command
def compare(
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    methods: MethodNames = _COMPARED,
    lr: Lr = None,
    epochs: Epochs = None,
    normalisation: Normalisation = None,
    settings: Set = None,
    seeds: Seeds = 5,
    split: Split = None,
    device: Device = "auto",
    engine: Engine = "auto",
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, out_option("Write a page, the figures and the results here.")
    ] = None,
    json_path: Json = None,
) -> None:
    """Train several methods on one graph and set them side by side."""
    from .api import each_settings
    from .methods import find

    names = [name.strip() for name in methods.split(",") if name.strip()]
    changes = _settings(settings, lr=lr, epochs=epochs, normalisation=normalisation)
    each_settings([find(name) for name in names], changes)
    _check_outputs(json_path, folder=out)
    data = _graph(dataset, graph, features, labels, split, data_root)
    _compare(data, names, out, json_path, _command(), seeds, device, engine, changes)


def _compare(
    data: Data,
    names: list[str],
    out: Path | None,
    json_path: str | None,
    said: str,
    seeds: int,
    device: str,
    engine: str = "auto",
    changes: dict[str, Any] | None = None,
) -> None:
    from . import api
    from .reporting.progress import progress

    with progress("training") as tell:
        results = api.compare(
            data,
            names,
            seeds=seeds,
            device=device,
            engine=engine,
            progress=tell,
            **(changes or {}),
        )
    figures_json = [result.to_dict() for result in results]
    if out is not None:
        from .files import atomic_directory
        from .reporting import figures
        from .reporting.page import report

        with atomic_directory(out) as folder, progress("drawing") as tell:
            tell(0, len(results) + 3)
            for count, result in enumerate(results, start=1):
                picture = folder / f"by_degree-{result.method}.png"
                figures.save(figures.by_degree(result), picture)
                tell(count, len(results) + 3)
            figures.save(figures.degrees(results[0].graph), folder / "degrees.png")
            figures.save(figures.side_by_side(results), folder / "side_by_side.png")
            report(results, folder / "report.html", command=said)
            (folder / "results.json").write_text(json.dumps(figures_json, indent=2) + "\n")
    _show(results, json_path)
    if out is not None:
        where = f"Page: {out / 'report.html'}   Picture: {out / 'side_by_side.png'}"
        _people(json_path).print(where, markup=False, highlight=False)
    _write_json(json_path, figures_json)


@command
def tune(
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    method: MethodName = "rawlsgcn-graph",
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Values to try, as name=a,b,c; may be repeated (else the paper's)."),
    ] = None,
    normalisation: Normalisation = None,
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
    from .methods import find, with_changes
    from .reporting.progress import progress
    from .reporting.table import tuning_table
    from .tuning import tune as tune_method

    changes = _settings(settings, normalisation=normalisation)
    with_changes(find(method).defaults, changes)
    values = {name: text.split(",") for name, text in _settings(grid).items()} or None
    for name, each in (values or {}).items():
        for value in each:
            with_changes(find(method).defaults, {name: value})
    _check_outputs(json_path, folder=out)
    data = _graph(dataset, graph, features, labels, split, data_root)
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
        from .files import atomic_directory
        from .models import write_model

        with atomic_directory(out) as folder:
            write_model(tuning.best, folder)
            text = json.dumps(tuning.to_dict(), indent=2, allow_nan=False) + "\n"
            (folder / "tuning.json").write_text(text, encoding="utf-8")
    console = _people(json_path)
    _say_notes(tuning.best.notes, console)
    console.print(tuning_table(tuning))
    took = f"{len(tuning.trials) * seeds} runs in {sum(tuning.seconds.values()):.1f} s"
    kept = "" if out is None else f"; the chosen model is in {out}"
    console.print(f"{took}{kept}", markup=False, highlight=False)
    _write_json(json_path, tuning.to_dict())


@command
def predict(
    model: Annotated[Path, typer.Option(help="The folder that 'train --out' wrote.")],
    out: Annotated[Path, out_option("Where to write: .csv, .tsv, .parquet or .npz.")],
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    seed: Annotated[
        int | None, typer.Option(help="Which run's seed (by default the best on validation).")
    ] = None,
    device: Device = "auto",
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Predict every node's class with a trained model, on the same or another graph."""
    from .methods.inputs import has_negative_features
    from .models import load_model
    from .predictions import check_path, write_predictions

    check_path(out)
    _check_outputs(json_path, file=out)
    trained = load_model(model, seed)
    data = _graph(dataset, graph, features, data_root=data_root, need_labels=False)
    probabilities = trained.predict(data, device=device)
    write_predictions(probabilities, data.get("node_ids"), out)
    notes = list(data.get("notes") or [])
    if trained.row_normalised and has_negative_features(data.x):
        notes.append("some features are negative, but those that the model learnt from were not.")
    summary = {
        "dataset": data.get("name"),
        "nodes": len(probabilities),
        "method": trained.method.name,
        "seed": trained.seed,
        "trained_on": trained.dataset,
        "classes": trained.classes,
        "predicted": probabilities.argmax(1).bincount(minlength=trained.classes).tolist(),
        "out": str(out),
        "notes": notes,
    }
    console = _people(json_path)
    _say_notes(notes, console)
    console.print(
        f"{trained.method.title}: predictions of {len(probabilities)} nodes in {out}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    _write_json(json_path, summary)


@command
def balance(
    out: Annotated[
        Path,
        out_option(
            "Where to write: .npz (scipy's form, with 'scale' and 'node_ids' beside it), or .csv "
            "or .tsv (an edge list; a self-loop's weight is its node's scaling, squared)."
        ),
    ],
    dataset: Dataset = None,
    graph: Graph = None,
    tol: Annotated[float, typer.Option(help="Largest error of a row or column sum.")] = 1e-8,
    max_iterations: Annotated[int, typer.Option(min=2, help="Most products to spend.")] = 10_000,
    device: Device = "auto",
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Write the doubly stochastic form of a graph's A + I, and its scaling vector."""
    from .api import pick_device
    from .balancing import Outcome
    from .balancing import balance as balance_graph
    from .balancing.output import check_path, write_balanced

    check_path(out)
    _check_outputs(json_path, file=out)
    where = pick_device(device)
    data = _graph(dataset, graph, data_root=data_root, need_labels=False, need_features=False)
    weight = data.get("edge_weight")
    scaling = balance_graph(
        data.edge_index.to(where),
        None if weight is None else weight.to(where),
        num_nodes=data.num_nodes,
        tol=tol,
        max_iterations=max_iterations,
    )
    best_there_is = scaling.reason is Outcome.STAGNATED
    if not scaling.converged and not best_there_is:
        raise RawlsError(
            f"not balanced: the residual is {scaling.residual:.1e} after {scaling.iterations} "
            f"products. {scaling.reason.message}"
        )
    write_balanced(scaling, data.get("node_ids"), out)
    summary = {
        "dataset": data.get("name"),
        "nodes": int(data.num_nodes),
        "iterations": scaling.iterations,
        "residual": scaling.residual,
        "converged": scaling.converged,
        "reason": scaling.reason.name.lower(),
    }
    console = _people(json_path)
    if best_there_is:
        _say_notes([f"float64 comes no closer than this, so --tol {tol:g} is not met."], console)
    console.print(
        f"{data.get('name')}: every row and column of A + I sums to 1 within "
        f"{scaling.residual:.1e} after {scaling.iterations} products; written to {out}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    _write_json(json_path, summary)


@command
def bench(
    parts: Annotated[
        list[str] | None, typer.Argument(help="training, methods, balance, scaling (else all).")
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
    from .api import pick_device
    from .bench import report, suite
    from .errors import unknown_name
    from .graphs.catalogue import NAMES

    chosen = list(parts or suite.PARTS)
    names = [name.strip() for name in datasets.split(",") if name.strip()]
    for kind, asked, known in (("part", chosen, suite.PARTS), ("dataset", names, NAMES)):
        for name in asked:
            if name not in known:
                raise unknown_name(kind, name, known)
    _check_outputs(json_path, folder=out)
    console = _people(json_path)
    from rich.console import Console

    with Console(stderr=True).status("measuring") as status:
        results = suite.run(
            chosen,
            names,
            pick_device(device),
            repeats=repeats,
            limit=limit,
            root=data_root,
            command=_command(),
            tell=lambda what: status.update(f"measuring {what}"),
        )
    if out is not None:
        report.write(results, out)
    console.print(report.table(results["figures"]))
    _write_json(json_path, results)


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
        typer.Option(help="Run nothing: draw the tables of --out into this file's marked place."),
    ] = None,
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Run the paper's experiments and hold every cell against its printed number."""
    if readme is not None:
        from .paper.output import read_results
        from .paper.readme import draw

        draw(read_results(out), readme)
        return
    from .paper.plan import PARTS, Plan
    from .paper.reproduce import reproduce as run_plan
    from .paper.reproduce import undone
    from .paper.summary import printed_summary

    asked = tuple(parts or ("all",))
    given: dict[str, Any] = {} if datasets is None else {"datasets": _names(datasets)}
    plan = Plan(
        parts=PARTS if "all" in asked else asked,
        methods=_names(methods or ""),
        seeds=tuple(range(seeds)),
        quick=quick_baselines,
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
        command=_command(),
    )
    failed, left = undone(results, plan)
    printed_summary(results, failed, left, out, _people(json_path))
    _write_json(json_path, results)
    if failed:
        raise typer.Exit(1)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _command() -> str:
    """The command line as it was typed, for the page."""
    import shlex

    return shlex.join(["rawlsgcn", *sys.argv[1:]])
