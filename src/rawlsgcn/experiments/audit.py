"""``rg.audit``: predictions of any model on a graph come in, and an :class:`Audit` goes out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from .._core.errors import RawlsError, unknown_name
from .._core.text import printable, shown_path
from .._core.threads import fork_safe_threads
from .._core.version import __version__
from ..evaluation.audit.comparison import compare_models
from ..evaluation.audit.findings import Provenance, ShownNodes, ShownPredictions
from ..evaluation.audit.grouping import Grouping
from ..evaluation.audit.intervals import SMALLEST
from ..evaluation.audit.model_audit import ResamplingSettings, audit_model
from ..evaluation.audit.node_scores import AllScores, NodeScores, score_nodes
from ..evaluation.audit.prediction_formats import LabeledNodes, PredictionSource
from ..evaluation.learning import better_than_constant
from ..evaluation.node_columns import BUILT_IN, NodeColumn, column_of, degrees, refuse_missing
from ..graphs.splits import EVALUATE, MASKS
from .audit_graph import graph_of, whole, without_invented_split
from .audit_inputs import GivenArray, KeyedFile, NodeIndex, read_column
from .audit_result import Audit
from .result import Result

Ints = npt.NDArray[np.int64]
SHOWN_NODES = 5000
"""Single nodes in the result at most; of larger graphs a sample."""


@fork_safe_threads()
def audit(
    graph: Data | str,
    predictions: Any,
    *,
    by: Any = "degree",
    bins: str | None = None,
    evaluate: str | None = None,
    scores: str = "auto",
    resamples: int = 1000,
    seed: int = 0,
    shown: int = SHOWN_NODES,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
) -> Audit:
    """Judge the predictions of one or several models by degree: who is worst off, and how sure.

    Args:
        graph: A torch_geometric ``Data`` with labels ``y``, or the name of a dataset.
        predictions: A file (see docs/audit.md), scores (nodes, classes) or classes (nodes,) as an
            array or tensor in node order, or a :class:`Result`; several as a list, or as a mapping
            from names.
        by: What nodes are grouped by: "degree", "in-degree", "pagerank", "core", a file of ids and
            values, one value for each node as an array, or a pair (name, such an array).
        bins: "degree" (every value), "quantile:K" or "edges:a,b,c"; by default up to 12 values
            stand alone and more are cut at their fifths.
        evaluate: "test" for the test nodes (the default where the graph came with masks, or a
            :class:`Result` was trained on them), "all" for every labelled node outside training and
            validation. A split that ``rg.read`` made up counts only if you say "test".
        scores: "auto", or "probabilities", "logits" or "classes" where the choice is wrong.
        resamples: Draws of every bootstrap and of every permutation test.
        seed: The seed of those draws.
        shown: Keep at most so many single nodes in the result; 0 for none.
        command: The command line, to be shown with how it was computed.
        files: The files that the graph came from, likewise; without this machine's folders.
    """
    resamples, seed = whole("resamples", resamples), whole("seed", seed)
    shown = whole("shown", shown)
    if resamples < 100:
        raise RawlsError(f"{resamples} resamples are too few for an interval: take 100 at least")
    data, incoming = graph_of(graph, by)
    index = NodeIndex(data.get("node_ids"), int(data.num_nodes))
    pairs = _pairs(predictions)
    sources = _sources(pairs, index)
    column = _column(data, by, incoming, index)
    if evaluate != "test" and not any(isinstance(each, Result) for _, each in pairs):
        data = without_invented_split(data)
    nodes, evaluated = _nodes(data, evaluate)
    models = [score_nodes(source, nodes, scores) for source in sources]
    for model, source in zip(models, sources, strict=True):
        if isinstance(source, KeyedFile):
            model.source = shown_path(model.source)
    chosen, notes = _chosen(models, nodes, evaluated)
    refuse_missing(column, chosen, data.get("node_ids"))
    return audited(
        data,
        [model.at(chosen, nodes.y) for model in models],
        chosen,
        column,
        bins=bins,
        settings=ResamplingSettings(resamples=resamples, seed=seed),
        evaluated=evaluated,
        files={
            **{name: shown_path(path) for name, path in (files or {}).items()},
            **{model.name: model.source for model in models},
        },
        command=command,
        shown=shown,
        notes=[*(data.get("notes") or []), *notes],
    )


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    """Each model's name, if it has one, and its predictions."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list | tuple):
        pairs = [(None, each) for each in given]
    else:
        pairs = [(None, given)]
    if not pairs:
        raise RawlsError("there is nothing to audit: give the predictions of a model at least")
    return pairs


def _sources(pairs: Sequence[tuple[Any, Any]], index: NodeIndex) -> list[PredictionSource]:
    sources: list[PredictionSource] = []
    for place, (name, each) in enumerate(pairs, start=1):
        if isinstance(each, str | Path):
            sources.append(KeyedFile(each, index, name))
        elif isinstance(each, Result):
            run = each.best_run
            source = f"{each.method} on {each.dataset}, seed {each.seeds[run]}"
            made = GivenArray(each.logits[run], index.nodes, name or each.title, source)
            made.named_form = "logits"
            sources.append(made)
        else:
            sources.append(GivenArray(each, index.nodes, name or f"model {place}"))
    _tell_apart(sources)
    return sources


def _tell_apart(sources: Sequence[PredictionSource]) -> None:
    """Give models of one name the names of their files, or numbers."""
    names = [source.name for source in sources]
    for place, source in enumerate(sources, start=1):
        if names.count(source.name) > 1 or source.name in names[: place - 1]:
            source.name = f"{source.name} #{place}"


def _column(data: Data, by: Any, incoming: Ints | None, index: NodeIndex) -> NodeColumn:
    if isinstance(by, str) and by == "in-degree" and incoming is not None:
        data.in_degree = incoming
    if isinstance(by, Path) or (isinstance(by, str) and by not in BUILT_IN and Path(by).is_file()):
        return column_of(data, read_column(Path(by), index))
    return column_of(data, by)


def _nodes(data: Data, evaluate: str | None) -> tuple[LabeledNodes, str]:
    """Which nodes may be judged, and in words which they are."""
    y = data.y.numpy()
    masks = [data.get(key) for key in MASKS]
    none = np.zeros(len(y), bool)
    if evaluate not in (None, *EVALUATE):
        raise unknown_name("choice of nodes", evaluate, EVALUATE)
    if any(mask is None for mask in masks):
        if evaluate == "test":
            raise RawlsError("the graph has no masks, so no test nodes: leave --evaluate out")
        return LabeledNodes(
            y, y >= 0, none, data.get("node_ids")
        ), "all labelled nodes with a prediction"
    train, validation, test = (mask.numpy() for mask in masks)
    if evaluate == "all":
        eligible, words = ~(train | validation), "all nodes outside training and validation"
    else:
        eligible, words = test, "the test nodes"
    return LabeledNodes(y, eligible & (y >= 0), validation, data.get("node_ids")), words


def _chosen(
    models: Sequence[AllScores], nodes: LabeledNodes, evaluated: str
) -> tuple[Ints, list[str]]:
    """The nodes that all models are judged on: eligible, labelled, and predicted by every one."""
    notes = []
    there = np.logical_and.reduce([model.there for model in models])
    chosen = np.flatnonzero(there & nodes.eligible)
    if not len(chosen):
        unlabelled = int((there & (nodes.y < 0)).sum())
        if unlabelled and unlabelled == int(there.sum()):
            raise RawlsError("none of the predicted nodes has a label: label some of them")
        raise RawlsError(
            f"none of the predicted nodes is among {evaluated}: predict those, or say "
            "--evaluate all (evaluate='all')"
        )
    left = int((nodes.eligible & ~there).sum())
    if left:
        whom = "not every model predicts them" if len(models) > 1 else "they have no prediction"
        notes.append(f"{left:,} of {evaluated} are left out, as {whom}.")
    unlabelled = int((there & (nodes.y < 0)).sum())
    if unlabelled:
        notes.append(f"{unlabelled:,} predicted nodes have no label and are left out.")
    return chosen, notes


def audited(
    graph: Data,
    models: Sequence[NodeScores],
    chosen: npt.NDArray[np.int64],
    column: NodeColumn,
    *,
    bins: str | None,
    settings: ResamplingSettings,
    evaluated: str,
    files: Mapping[str, str],
    command: str | None,
    shown: int = SHOWN_NODES,
    notes: Sequence[str] = (),
) -> Audit:
    """Judge ``models``, whose scores are of the ``chosen`` nodes, and every pair that learned."""
    began = time.perf_counter()
    degree = degrees(graph)[chosen]
    here = NodeColumn(column.name, column.values[chosen])
    grouping, words = Grouping.of(here, degree, bins)
    low = degree <= np.percentile(degree, 25)
    models = [_with_learning(model, graph.y.numpy()[chosen], low) for model in models]
    judged = [audit_model(model, grouping, settings) for model in models]
    learned = [model for model in models if model.learned]
    pairs = [compare_models(a, b, grouping, low, settings) for a, b in combinations(learned, 2)]
    how = Provenance(
        version=__version__,
        seed=settings.seed,
        resamples=settings.resamples,
        level=settings.level,
        by=column.name,
        bins=words,
        bias_over=grouping.bias_over,
        evaluated=evaluated,
        graph_nodes=int(graph.num_nodes),
        graph_edges=int(graph.edge_index.shape[1]) // 2,
        graph_features=graph.get("x") is not None,
        nodes=len(chosen),
        smallest_group=SMALLEST,
        files=dict(files),
        command=command,
        seconds=time.perf_counter() - began,
    )
    return Audit(
        graph=str(graph.get("name") or "graph"),
        synthetic=bool(graph.get("synthetic")),
        column=column.name,
        ordered=column.ordered,
        models=judged,
        comparisons=pairs,
        how=how,
        training_nodes_excluded=all(graph.get(key) is not None for key in MASKS),
        nodes=_single_nodes(graph, models, chosen, here, degree, shown, settings.seed),
        notes=[*notes, *([] if grouping.note is None else [printable(grouping.note)])],
    )


def _with_learning(model: NodeScores, y: Ints, low: npt.NDArray[np.bool_]) -> NodeScores:
    """The model's scores with the answer whether it has learned, of all or of some degrees."""
    learned, majority = better_than_constant(model.predicted, y, (low, ~low))
    return replace(model, learned=learned, majority=majority)


def _single_nodes(
    graph: Data,
    models: Sequence[NodeScores],
    chosen: npt.NDArray[np.int64],
    column: NodeColumn,
    degree: npt.NDArray[np.int64],
    most: int,
    seed: int,
) -> ShownNodes | None:
    """The nodes for the explorer; of more than ``most`` a sample drawn without replacement."""
    if most <= 0:
        return None
    kept = np.arange(len(chosen))
    if len(chosen) > most:
        rng = np.random.default_rng([seed, 7])
        kept = np.sort(rng.choice(len(chosen), most, replace=False))
    ids: Any = graph.get("node_ids")
    names = np.arange(graph.num_nodes) if ids is None else ids
    values = column.values[kept]
    return ShownNodes(
        of=len(chosen),
        id=[_plain(names[node]) for node in chosen[kept]],
        value=[_plain(value) for value in values],
        degree=degree[kept].tolist(),
        label=graph.y.numpy()[chosen[kept]].tolist(),
        models=[
            ShownPredictions(model.name, model.predicted[kept].tolist(), model.loss[kept].tolist())
            for model in models
        ],
    )


def _plain(value: Any) -> Any:
    """A number or text of Python's own, which JSON knows."""
    return value.item() if hasattr(value, "item") else value
