"""``fit`` and ``compare``: a graph comes in, methods are trained on it, and they are judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import index
from typing import TYPE_CHECKING, Any

import torch

from .._core.errors import RawlsError, unknown_name
from .._core.machine import peak_memory_mb, pick_device
from .._core.progress import ProgressCallback
from .._core.threads import fork_safe_threads, threads_for_graph
from ..balancing import ABLATION_NORMALIZATIONS
from ..evaluation.calibration import CalibrationOutcome
from ..evaluation.run_metrics import evaluate_run
from ..graphs import check, graph_notes, load
from ..graphs.splits import evaluate_on
from ..methods import Inputs, Method, Settings, available, find, with_changes
from ..methods.inputs import has_negative_features
from ..training import Job, train
from .comparison import Comparison
from .result import Result

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ..training import TrainedRun

#: More runs than this are a slip of the finger.
MOST_RUNS = 100_000


@fork_safe_threads()
def fit(
    graph: Data | str,
    method: str = "rawlsgcn-graph",
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    evaluate: str = "test",
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> Result:
    """Train a method on a graph, once for each seed, and judge it on the test nodes.

    Args:
        graph: A torch_geometric ``Data``, or the name of a dataset (see ``rawlsgcn datasets``).
        method: The method's name, for example ``"rawlsgcn-grad"``.
        seeds: How many runs (seeds 0 to N-1), or the seeds themselves.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU where there is one.
        engine: ``"auto"``; ``"reference"`` for plain full-graph training; or ``"stacked"``, which
            trains the GCN family, and cannot stop early.
        evaluate: ``"test"``, or ``"all"`` for every labelled node outside training and validation.
        progress: Called with the epochs done, the epochs in all and the method's title.
        **settings: The method's settings, such as ``lr``, ``epochs`` or ``weight_decay``.
    """
    chosen = find_method(method)
    changed = with_changes(chosen.defaults, settings)
    clean = evaluate_on(checked(graph), evaluate)
    return train_and_judge(clean, chosen, changed, seed_list(seeds), device, engine, progress)


@fork_safe_threads()
def compare(
    graph: Data | str,
    methods: str | Iterable[str] = ("gcn", "rawlsgcn-graph", "rawlsgcn-grad"),
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    evaluate: str = "test",
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> Comparison:
    """Train several methods on one graph; ``settings`` are those of every one of them.

    A ``normalization`` goes to the methods that have a choice; the others keep their own and
    say so in their notes.
    """
    names = [methods] if isinstance(methods, str) or not isinstance(methods, Iterable) else methods
    chosen = [find_method(name) for name in names]
    if not chosen:
        raise RawlsError("no method to compare: name at least one")
    own = each_settings(chosen, settings)
    clean, each = evaluate_on(checked(graph), evaluate), seed_list(seeds)
    results = Comparison()
    for method, changed in zip(chosen, own, strict=True):
        result = train_and_judge(
            clean, method, changed, each, device, engine, progress, only=len(chosen) == 1
        )
        results.append(result)
        if settings.get("normalization") not in (None, changed.normalization):
            results[-1].notes.append(
                f"{method.title} has no choice of normalization and was trained with its own."
            )
    return results


def each_settings(methods: Sequence[Method], changes: Mapping[str, Any]) -> list[Settings]:
    """The methods' settings, each with the ``changes`` that it can take."""
    wanted = changes.get("normalization")
    fixed = [method.defaults.normalization not in ABLATION_NORMALIZATIONS for method in methods]
    if wanted is None or all(fixed):
        return [with_changes(method.defaults, changes) for method in methods]
    if wanted not in ABLATION_NORMALIZATIONS:
        raise unknown_name("normalization", wanted, ABLATION_NORMALIZATIONS)
    others = {name: value for name, value in changes.items() if name != "normalization"}
    return [
        with_changes(method.defaults, others if own else changes)
        for method, own in zip(methods, fixed, strict=True)
    ]


def train_and_judge(
    graph: Data,
    method: Method,
    settings: Settings,
    seeds: list[int],
    device: str = "auto",
    engine: str = "auto",
    progress: ProgressCallback | None = None,
    *,
    only: bool = True,
) -> Result:
    """Train a method on a checked graph; ``only`` says that no other was trained before it."""
    inputs = inputs_of(graph, settings, device)
    jobs = [Job(settings, seed) for seed in seeds]
    runs, seconds = train(
        method, inputs, jobs, engine=engine, progress=described(progress, method.title)
    )
    # On a GPU the peak was reset; that of a process is also that of all before.
    alone = only or inputs.device.type == "cuda"
    return judged(graph, inputs, method, settings, seeds, runs, seconds, alone=alone)


def inputs_of(graph: Data, settings: Settings, device: str) -> Inputs:
    """The graph on its device; the GPU's peak memory is counted from here."""
    target = pick_device(device)
    if target.type == "cuda":
        torch.cuda.reset_peak_memory_stats(target)
    with threads_for_graph(graph.x, graph.edge_index):
        return Inputs.of(graph, normalize_features=settings.normalize_features, device=target)


def described(progress: ProgressCallback | None, title: str) -> ProgressCallback:
    """A callback for an engine: it adds the method's title."""

    def call(done: int, total: int, description: str | None = None) -> None:
        if progress is not None:
            progress(done, total, title)

    return call


def judged(
    graph: Data,
    inputs: Inputs,
    method: Method,
    settings: Settings,
    seeds: list[int],
    runs: list[TrainedRun],
    seconds: dict[str, float],
    *,
    alone: bool = True,
) -> Result:
    """The result of trained runs: every figure on the graph's test nodes.

    ``alone`` says whether the peak memory is theirs, and not also of others before or beside them.
    """
    with threads_for_graph(graph.x, graph.edge_index):
        degree = inputs.degree.cpu()
        run_metrics = [
            evaluate_run(run.logits, graph.y, degree, graph.test_mask, graph.val_mask)
            for run in runs
        ]
    notes = graph_notes(graph)
    notes += dict.fromkeys(note for run in runs for note in run.notes)
    if settings.normalize_features and has_negative_features(graph.x):
        notes.append("some features are negative: rows were not divided by their sums.")
    told = {CalibrationOutcome.FOUND, CalibrationOutcome.DIVERGED}
    outcomes = {each.calibration for each in run_metrics} - told
    notes += [f"temperature scaling: {outcome.value}" for outcome in sorted(outcomes)]
    result = Result(
        dataset=graph.get("name") or "graph",
        synthetic=bool(graph.get("synthetic")),
        method=method.name,
        title=method.title,
        settings=asdict(settings),
        seeds=seeds,
        device=inputs.device.type,
        parameters=runs[0].parameters,
        seconds=seconds,
        peak_memory_mb=peak_memory_mb(inputs.device) if alone else math.nan,
        run_metrics=run_metrics,
        graph=graph,
        degree=degree,
        mask=graph.test_mask,
        logits=torch.stack([run.logits for run in runs]),
        states=[run.state for run in runs],
        notes=notes,
    )
    if result.failure is not None:
        notes.append(result.failure)
    elif result.not_learned:
        which = ", ".join(map(str, result.not_learned))
        notes.append(f"{method.title} has not learned in every run: not with seed {which}.")
    return result


def checked(graph: Data | str) -> Data:
    """A dataset by name, or the user's own graph after the checks at the door."""
    return load(graph, sparse=True) if isinstance(graph, str) else check(graph, sparse=True)


def find_method(name: Any) -> Method:
    """The method called ``name``, or a sentence that says what there is."""
    if not isinstance(name, str):
        raise unknown_name("method", name, available())
    return find(name)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Seeds 0 to N-1 for a number N, or the seeds as they were given."""
    wrong = RawlsError(f"seeds must be a number of runs or a list of whole numbers, not {seeds!r}")
    if isinstance(seeds, str | bytes):
        raise wrong
    try:
        if isinstance(seeds, Iterable):
            chosen = [index(seed) for seed in seeds]
        else:
            chosen = list(range(min(index(seeds), MOST_RUNS + 1)))
    except TypeError:
        raise wrong from None
    if not chosen:
        raise RawlsError("no seeds: ask for at least one run")
    if len(chosen) > MOST_RUNS:
        raise RawlsError(f"too many seeds: ask for {MOST_RUNS:,} runs at most")
    for seed in (min(chosen), max(chosen)):
        if not 0 <= seed < 2**63:
            raise RawlsError(f"a seed must be at least 0 and less than 2^63, {seed} is not")
    if len(set(chosen)) < len(chosen):
        raise RawlsError("a seed is there twice: its runs would be the same")
    return chosen
