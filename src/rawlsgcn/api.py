"""``fit`` and ``compare``: a graph comes in, methods are trained on it, and they are judged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from .errors import RawlsError
from .evaluation.calibration import Outcome
from .evaluation.judgement import judge
from .graphs import check, load
from .methods import Inputs, Method, Settings, find, with_changes
from .methods.inputs import has_negative_features
from .result import Result
from .training import Job, train

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from .training import Run

# Called with (steps done, steps in all, what is being done).
Tell = Callable[[int, int, str], None]


def fit(
    graph: Data | str,
    method: str = "rawlsgcn-graph",
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    progress: Tell | None = None,
    **settings: Any,
) -> Result:
    """Train a method on a graph, once for each seed, and judge it on the test nodes.

    Args:
        graph: A torch_geometric ``Data``, or the name of a dataset (see ``rawlsgcn datasets``).
        method: The method's name, for example ``"rawlsgcn-grad"``.
        seeds: How many runs (seeds 0 to N-1), or the seeds themselves.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU where there is one.
        engine: ``"auto"``, or ``"reference"`` for plain full-graph training.
        progress: Called with the epochs done, the epochs in all and the method's title.
        **settings: The method's settings, such as ``lr``, ``epochs`` or ``weight_decay``.
    """
    chosen = find(method)
    changed = with_changes(chosen.defaults, settings)
    return _fit(checked(graph), chosen, changed, seed_list(seeds), device, engine, progress)


def compare(
    graph: Data | str,
    methods: Iterable[str] = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad"),
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    progress: Tell | None = None,
    **settings: Any,
) -> list[Result]:
    """Train several methods on one graph; ``settings`` are those of every one of them."""
    chosen = [find(name) for name in methods]
    if not chosen:
        raise RawlsError("no method to compare: name at least one")
    changed = [with_changes(method.defaults, settings) for method in chosen]
    clean, each = checked(graph), seed_list(seeds)
    return [
        _fit(clean, method, own, each, device, engine, progress)
        for method, own in zip(chosen, changed, strict=True)
    ]


def _fit(
    graph: Data,
    method: Method,
    settings: Settings,
    seeds: list[int],
    device: str,
    engine: str,
    progress: Tell | None,
) -> Result:
    inputs = inputs_of(graph, settings, device)
    jobs = [Job(settings, seed) for seed in seeds]
    runs, seconds = train(
        method, inputs, jobs, engine=engine, progress=teller(progress, method.title)
    )
    return judged(graph, inputs, method, settings, seeds, runs, seconds)


def inputs_of(graph: Data, settings: Settings, device: str) -> Inputs:
    """The graph on its device; the GPU's peak memory is counted from here."""
    target = pick_device(device)
    if target.type == "cuda":
        torch.cuda.reset_peak_memory_stats(target)
    return Inputs.of(graph, normalise_features=settings.normalise_features, device=target)


def teller(progress: Tell | None, title: str) -> Callable[[int, int], None]:
    """What an engine calls after an epoch: it adds what is being trained."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, title)

    return tell


def judged(
    graph: Data,
    inputs: Inputs,
    method: Method,
    settings: Settings,
    seeds: list[int],
    runs: list[Run],
    seconds: dict[str, float],
) -> Result:
    """The result of trained runs: every figure on the graph's test nodes."""
    degree = inputs.degree.cpu()
    judgements = [
        judge(run.logits, graph.y, degree, graph.test_mask, graph.val_mask) for run in runs
    ]
    notes = list(graph.get("notes") or [])
    if settings.normalise_features and has_negative_features(graph.x):
        notes.append("some features are negative: rows were not divided by their sums.")
    outcomes = {judgement.calibration for judgement in judgements} - {Outcome.FOUND}
    notes += [f"temperature scaling: {outcome.value}" for outcome in sorted(outcomes)]
    return Result(
        dataset=graph.get("name") or "graph",
        synthetic=bool(graph.get("synthetic")),
        method=method.name,
        title=method.title,
        settings=asdict(settings),
        seeds=seeds,
        device=inputs.device.type,
        parameters=runs[0].parameters,
        seconds=seconds,
        peak_memory_mb=_peak_memory_mb(inputs.device),
        judgements=judgements,
        graph=graph,
        degree=degree,
        mask=graph.test_mask,
        logits=torch.stack([run.logits for run in runs]),
        states=[run.state for run in runs],
        notes=notes,
    )


def checked(graph: Data | str) -> Data:
    """A dataset by name, or the user's own graph after the checks at the door."""
    return load(graph) if isinstance(graph, str) else check(graph)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Seeds 0 to N-1 for a number N, or the seeds as they were given."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not chosen:
        raise RawlsError("no seeds: ask for at least one run")
    if min(chosen) < 0:
        raise RawlsError(f"a seed must not be negative, {min(chosen)} is")
    return chosen


def pick_device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` is a GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise RawlsError(f"unknown device '{name}': use cpu, cuda or auto")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RawlsError(f"there is no GPU for --device {name} here: use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise RawlsError(f"there is no GPU '{name}' here: the last is cuda:{count - 1}")
    return device


def _peak_memory_mb(device: torch.device) -> float:
    """Peak memory: the tensors' on a GPU, the whole process's resident set on the CPU."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (2**20 if sys.platform == "darwin" else 2**10)
