"""The command that trains one method: train."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._core.errors import RawlsError
from ..methods import find_method
from . import options as opt
from . import outputs
from .base import command, require_one_process
from .options import parse_settings, read_graph
from .step_training import StepOptions, train_on_rows, train_on_samples

if TYPE_CHECKING:
    from torch_geometric.data import Data


_IN_STEPS = ("batch_size", "seed", "average", "checkpoint_every")
#: The options of ``train`` that only some engines have, by what each trains on.
_OPTIONS = {
    "the whole graph": set(),
    "samples": {"num_neighbors", "workers", *_IN_STEPS},
    "smoothed rows": set(_IN_STEPS),
}


@command(
    "--dataset cora-ml --method rawlsgcn-graph --lr 0.05 --out model",
    "--graph edges.csv --features features.csv --labels labels.csv",
)
def train(
    context: typer.Context,
    dataset: opt.Dataset = None,
    graph: opt.Graph = None,
    features: opt.Features = None,
    labels: opt.Labels = None,
    shards: opt.Shards = None,
    method: opt.MethodName = "rawlsgcn-graph",
    lr: opt.Lr = None,
    epochs: opt.Epochs = None,
    normalization: opt.Normalization = None,
    settings: opt.Set = None,
    seeds: opt.Seeds = 5,
    split: opt.Split = None,
    evaluate: opt.Evaluate = "test",
    device: opt.Device = "auto",
    engine: opt.TrainEngine = "auto",
    memory: opt.Memory = None,
    data_root: opt.DataRoot = None,
    out: Annotated[
        Path | None,
        opt.out_option("Keep the model, metrics, predictions, a page and a picture here."),
    ] = None,
    json_path: opt.Json = None,
    num_neighbors: opt.NumNeighbors = None,
    batch_size: opt.BatchSize = None,
    seed: opt.StepSeed = 0,
    workers: opt.Workers = 0,
    average: opt.Average = 0.1,
    checkpoint_every: opt.CheckpointEvery = 0,
) -> None:
    """Train one method on a graph and evaluate it by degree.

    The engine is chosen by the size of the graph, the method and the memory. With --shards it is
    trained on smoothed rows or on sampled neighborhoods, also by several processes under
    torchrun, and goes on from the checkpoint in --out if there is one.
    """
    from .._core.memory import memory_limit
    from ..experiments.comparison import Comparison
    from ..experiments.fitting import fit
    from ..experiments.model_files import outdated_in
    from ..graphs.shards.shards import Shards
    from ..graphs.splits import require_evaluated
    from ..reporting.progress import progress
    from ..training.engine_choice import EngineChoice, GraphSize, choose_engine

    changes = parse_settings(settings, lr=lr, epochs=epochs, normalization=normalization)
    chosen, limit = find_method(method), memory_limit(memory)
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
    names = ("dataset", "graph", "features", "labels", "split", "data_root")
    files = {name: context.params[name] for name in names}
    require_evaluated(evaluate)  # an error before a graph is read or balanced
    if {"seed", "seeds"} <= given:
        raise RawlsError("--seed is of one run, --seeds the number of several: give one of them")
    if shards is not None and any(files[name] for name in names[:-1]):
        raise RawlsError("--shards has the whole graph: leave out --dataset, --split and files")
    if num_neighbors is not None and engine not in ("auto", "sampled"):
        raise RawlsError(f"--num-neighbors is for the engine 'sampled', not '{engine}'")
    inputs = [graph, features, labels]
    opened = None if shards is None else Shards(shards)
    data: Data | None = None
    if num_neighbors is not None or (engine == "sampled" and shards is None):
        choice = EngineChoice("sampled")
    else:
        configured = chosen.configure(changes)  # an error before a graph is read
        if opened is not None:
            opened.require_labels()
            size = GraphSize.of_shards(opened)
        else:
            _require_options(given, "the whole graph")
            require_one_process("train", "--num-neighbors or --shards")
            outputs.check_outputs(json_path, folder=out, inputs=inputs)
            data = read_graph(**files)
            size = GraphSize.of(data)
        choice = choose_engine(chosen, configured, size, limit, engine=engine, runs=seeds)
    # Of several processes only the first says it.
    if choice.reason != "you said so" and os.environ.get("RANK", "0") == "0":
        said = f"Training on {choice.trained_on}: {choice.reason}."
        outputs.people(json_path).print(said, soft_wrap=True)
    _require_options(given, choice.trained_on)
    in_steps = StepOptions(
        out=out,
        json_path=json_path,
        device=device,
        memory=limit,
        evaluate=evaluate,
        batch_size=batch_size,
        run={
            "seeds": range(seeds) if "seeds" in given else (seed,),
            "average": average,
            "checkpoint_every": checkpoint_every,
        },
    )
    if choice.engine == "sampled":
        source = opened or (lambda: read_graph(**files) if data is None else data)
        neighbors = num_neighbors or "10,10"
        train_on_samples(chosen, changes, neighbors, workers, source, inputs, in_steps)
        return
    if opened is not None and choice.engine == "smoothed":
        named = configured.epochs if "epochs" in changes else None
        train_on_rows(opened, configured, named, in_steps)
        return
    if opened is not None:
        from ..graphs.shards.shard_graph import graph_of_shards

        require_one_process(f"train --method {method}")
        outputs.check_outputs(json_path, folder=out, shards=shards)
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

    def write(folder: Path) -> None:
        from ..reporting import figures

        result.write_model(folder)
        result.to_predictions(folder / "predictions.csv")
        figures.save(figures.by_degree(result), folder / "by_degree.png")

    how = {"command": outputs.typed_command(), "graph_options": outputs.graph_options(context)}
    outdated = outdated_in(out or Path())
    outputs.present(Comparison([result]), out, json_path, write, outdated, **how)
    if out is not None:
        outputs.say_written(out, outputs.people(json_path))
    outputs.write_json(json_path, result.to_dict())


def _require_options(given: set[str], trained_on: str) -> None:
    """Raise an error for an option of ``train`` that does not apply."""
    for name in sorted(given & _OPTIONS["samples"] - _OPTIONS[trained_on]):
        cure = ", or give --num-neighbors" if trained_on == "the whole graph" else ""
        raise RawlsError(
            f"--{name.replace('_', '-')} does not apply to training on {trained_on}: leave it "
            f"out{cure}"
        )
