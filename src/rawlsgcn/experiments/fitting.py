"""``fit``: train a method on a graph, evaluate it by degree, return the result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
from ..graphs.splits import evaluate_on, missing_classes
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
    (result,), _ = train_settings(
        evaluate_on(checked(graph), evaluate),
        chosen,
        [changed],
        seed_list(seeds),
        device=device,
        engine=engine,
        progress=progress,
        check_weight_decay=check_weight_decay,
    )
    return result


def train_settings(
    graph: Data,
    method: Method,
    combinations: Sequence[Settings],
    seeds: list[int],
    *,
    device: str = "auto",
    engine: str = "auto",
    progress: ProgressCallback | None = None,
    check_weight_decay: bool = False,
    only: bool = True,
) -> tuple[list[Result], dict[str, float]]:
    """Train a method on a validated graph with each combination of settings.

    Returns a result for each combination, of which the best may have a note on its weight decay,
    and the seconds of all. ``only`` says that nothing else was trained in this process before.
    """
    trained: dict[Settings, tuple[Result, Inputs]] = {}
    seconds = {"prepare": 0.0, "train": 0.0, "evaluate": 0.0}
    # Whether features are normalized decides the inputs, so such runs are trained apart.
    for normalized in sorted({each.normalize_features for each in combinations}):
        group = [each for each in combinations if each.normalize_features is normalized]
        inputs = prepare_inputs(graph, group[0], device)
        jobs = [Job(each, seed) for each in group for seed in seeds]
        tell = described(progress, method.title)
        runs, took = train_runs(method, inputs, jobs, engine=engine, progress=tell)
        seconds = {part: seconds[part] + value for part, value in took.items()}
        # On a GPU the peak was reset; that of a process includes everything before.
        alone = len(combinations) == 1 and (only or inputs.device.type == "cuda")
        for place, each in enumerate(group):
            own = runs[place * len(seeds) : (place + 1) * len(seeds)]
            share = {part: value / len(group) for part, value in took.items()}
            result = evaluate_runs(graph, inputs, method, each, seeds, own, share, alone=alone)
            result.notes += missing_classes(graph)
            trained[each] = result, inputs
    results = [trained[each][0] for each in combinations]
    if check_weight_decay and not all(each.diverged for each in results):
        best = best_result(results)
        settings = combinations[results.index(best)]
        tell = described(progress, f"{method.title} with less weight decay")
        inputs = trained[settings][1]
        note = weight_decay_note(best, method, settings, inputs, engine=engine, progress=tell)
        best.notes += [] if note is None else [note]
    return results, seconds


def best_result(results: Sequence[Result], metric: str = "validation_accuracy") -> Result:
    """The result with the highest mean of a metric, among those without divergence."""
    sound = [each for each in results if not each.diverged]
    if not sound:
        raise RawlsError(
            "nothing can be chosen: training diverged with every combination of the grid; "
            "try lower learning rates (lr)"
        )
    return max(sound, key=lambda each: each.spread(metric).mean)


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
    kind: type[Result] = Result,
    **about: Any,
) -> Result:
    """The result of trained runs, with every figure on the graph's test nodes.

    ``alone`` says whether the peak memory is theirs, and not also of others before or beside them;
    ``about`` are further fields of a ``kind`` of result.
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
    fields: dict[str, Any] = {
        "dataset": graph.get("name") or "graph",
        "synthetic": bool(graph.get("synthetic")),
        "method": method.name,
        "title": method.title,
        "settings": asdict(settings),
        "seeds": seeds,
        "device": inputs.device.type,
        "parameters": runs[0].parameters,
        "seconds": seconds,
        "peak_memory_mb": peak_memory_mb(inputs.device) if alone else math.nan,
        "run_metrics": run_metrics,
        "graph": graph,
        "degree": degree,
        "mask": graph.test_mask,
        "logits": torch.stack([run.logits for run in runs]),
        "states": [run.state for run in runs],
        "notes": notes,
    }
    result = kind(**fields | about)
    if result.failure is not None:
        notes.append(result.failure)
    elif result.not_learned:
        which = ", ".join(map(str, result.not_learned))
        notes.append(f"{result.title} has not learned in every run: not with seed {which}.")
    return result


def checked(graph: Data | str) -> Data:
    """A dataset by name or the user's own graph, validated, with sparse features as CSR."""
    return load(graph, sparse=True) if isinstance(graph, str) else check(graph, sparse=True)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """Seeds 0 to N-1 for a number N, or the seeds themselves, validated."""
    try:
        if isinstance(seeds, str | bytes):
            raise TypeError
        if not isinstance(seeds, Iterable):
            seeds = range(min(index(seeds), MOST_RUNS + 1))
        chosen = [index(seed) for seed in seeds]
    except TypeError:
        raise RawlsError(
            f"seeds must be a number of runs or a list of whole numbers, not {seeds!r}"
        ) from None
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
