"""``fit``: train a method on a graph, evaluate it by degree, return the result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from operator import index
from typing import TYPE_CHECKING, Any

import torch

from .._core.errors import RawlsError
from .._core.machine import peak_memory_mb, pick_device
from .._core.progress import ProgressCallback
from .._core.threads import fork_safe_threads, threads_for_graph
from ..evaluation.calibration import CalibrationOutcome
from ..evaluation.run_metrics import evaluate_run
from ..graphs import check, graph_notes, load
from ..graphs.node_features import has_negative_features
from ..graphs.splits import evaluate_on
from ..methods import Inputs, Method, Settings, find_method
from ..training import Job, train_runs
from .result import Result
from .weight_decay_check import weight_decay_note

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from typing_extensions import Unpack

    from ..methods.settings import SettingsKeywords
    from ..training import TrainedRun

#: More runs than this are a typing error.
MOST_RUNS = 100_000


@fork_safe_threads()
def fit(
    graph: Data | str,
    method: str | Method | type[Method] = "rawlsgcn-graph",
    *,
    seeds: int | Iterable[int] = 5,
    device: str = "auto",
    engine: str = "auto",
    evaluate: str = "test",
    method_settings: Mapping[str, Any] | None = None,
    check_weight_decay: bool = True,
    progress: ProgressCallback | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Result:
    """Train a method on a graph, once for each seed, and evaluate it by degree.

    Args:
        graph: A torch_geometric ``Data``, a networkx graph, or the name of a dataset (see
            ``rawlsgcn datasets``).
        method: A name (see :func:`rawlsgcn.methods.method_names`), or a
            :class:`rawlsgcn.methods.Method` of your own, as a class or an object.
        seeds: The number of runs (seeds 0 to N-1), or the seeds themselves.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU if there is one.
        engine: ``"auto"``; ``"reference"`` for plain full-graph training; or ``"stacked"``, which
            trains many runs of the GCN family at once, and cannot stop early.
        evaluate: ``"test"``, or ``"all"`` for every labeled node outside training and validation.
        method_settings: Settings that only this method has, such as ``{"alpha": 0.01}`` of
            ``"redress"``.
        check_weight_decay: Whether a low training accuracy is checked for a weight decay that is
            too large, and noted; this trains one more run of a method of the GCN family.
        progress: Called with the epochs done, the epochs in total and the method's title.
        **settings: The settings that every method has: ``lr``, ``epochs``, ``weight_decay``,
            ``dropout``, ``hidden_channels``, ``num_layers``, ``normalization``,
            ``normalize_features`` and ``patience`` (see :class:`rawlsgcn.methods.Settings`).

    Returns:
        The result, with the predictions, the weights and the figures of every run.

    Raises:
        RawlsError: If the graph, the method, a setting or another argument is not valid.

    Example:
        >>> import rawlsgcn as rg
        >>> result = rg.fit(rg.synthetic(300), "rawlsgcn-graph", seeds=2, epochs=20, lr=0.05)
        >>> len(result.accuracy.runs), result.logits.shape[0]
        (2, 2)
    """
    chosen = find_method(method)
    changed = chosen.configure({**settings, **(method_settings or {})})
    clean = evaluate_on(checked(graph), evaluate)
    return train_and_evaluate(
        clean,
        chosen,
        changed,
        seed_list(seeds),
        device,
        engine,
        progress,
        check_weight_decay=check_weight_decay,
    )


def train_and_evaluate(
    graph: Data,
    method: Method,
    settings: Settings,
    seeds: list[int],
    device: str = "auto",
    engine: str = "auto",
    progress: ProgressCallback | None = None,
    *,
    only: bool = True,
    check_weight_decay: bool = False,
) -> Result:
    """Train a method on a validated graph; ``only`` says that no other was trained before it."""
    inputs = prepare_inputs(graph, settings, device)
    jobs = [Job(settings, seed) for seed in seeds]
    runs, seconds = train_runs(
        method, inputs, jobs, engine=engine, progress=described(progress, method.title)
    )
    # On a GPU the peak was reset; that of a process includes everything before.
    alone = only or inputs.device.type == "cuda"
    result = evaluate_runs(graph, inputs, method, settings, seeds, runs, seconds, alone=alone)
    if check_weight_decay:
        add_weight_decay_note(result, method, settings, inputs, engine, progress)
    return result


def add_weight_decay_note(
    result: Result,
    method: Method,
    settings: Settings,
    inputs: Inputs,
    engine: str,
    progress: ProgressCallback | None,
) -> None:
    """Check the weight decay of a result; if it is too large, its notes say so."""
    reported = described(progress, f"{method.title} with less weight decay")
    note = weight_decay_note(result, method, settings, inputs, engine=engine, progress=reported)
    if note is not None:
        result.notes.append(note)


def prepare_inputs(graph: Data, settings: Settings, device: str) -> Inputs:
    """The graph on its device; the GPU's peak memory is counted from here."""
    target = pick_device(device)
    if target.type == "cuda":
        torch.cuda.reset_peak_memory_stats(target)
    with threads_for_graph(graph.x, graph.edge_index):
        return Inputs.of(graph, normalize_features=settings.normalize_features, device=target)


def described(progress: ProgressCallback | None, title: str) -> ProgressCallback:
    """A callback for an engine, which adds the method's title."""

    def call(done: int, total: int, description: str | None = None) -> None:
        if progress is not None:
            progress(done, total, title)

    return call


def evaluate_runs(
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
    """The result of trained runs, with every figure on the graph's test nodes.

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
    outcomes = {each.calibration for each in run_metrics}
    outcomes -= {CalibrationOutcome.FOUND, CalibrationOutcome.DIVERGED}
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
    """A dataset by name or the user's own graph, validated, with sparse features as CSR."""
    return load(graph, sparse=True) if isinstance(graph, str) else check(graph, sparse=True)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Seeds 0 to N-1 for a number N, or the seeds themselves, validated."""
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
        raise RawlsError("a seed appears twice: its runs would be the same")
    return chosen
