"""``rg.audit``: who is worst off under the predictions of any model, and how sure that is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import nn
from torch_geometric.data import Data

from .._core import __version__
from .._core.errors import RawlsError
from .._core.text import printable, shown_path
from .._core.threads import fork_safe_threads
from ..evaluation.audit.grouping import Grouping
from ..evaluation.audit.model_audit import audit_models
from ..evaluation.audit.node_scores import NodeScores, score_nodes
from ..evaluation.audit.prediction_formats import PredictionSource
from ..evaluation.audit.resampling import LEVEL
from ..evaluation.degree_bias import SMALLEST_GROUP
from ..evaluation.node_centralities import BUILT_IN, NodeColumn, check_complete, column_of, degrees
from ..graphs import graph_notes, load
from ..graphs.readers.node_link import is_networkx
from ..graphs.shards import Shards
from ..graphs.splits import MASKS
from .audit_result import Audit, Provenance, ShownNodes, ShownPredictions
from .evaluated_nodes import (
    evaluated_nodes,
    labeled_nodes,
    marked_split,
    predicted_by_all,
    split_notes,
)
from .frame_alignment import in_class_order, in_node_order
from .module_predictions import module_scores
from .prediction_alignment import (
    AlignedArray,
    AlignedFile,
    NodeIndex,
    checked_graph,
    read_column,
    whole_number,
    without_made_split,
)

Ints = npt.NDArray[np.int64]
SHOWN_NODES = 5000
"""The most single nodes in the result; of larger graphs a sample."""


@fork_safe_threads()
def audit(
    graph: Data | str | nn.Module | Shards,
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
    graph_options: Mapping[str, str] | None = None,
) -> Audit:
    """Audit the predictions of one or several models by degree: who is worst off, and how sure?

    Args:
        graph: A torch_geometric ``Data`` with labels ``y``, a networkx graph with labels, the
            name of a dataset, or :class:`rawlsgcn.graphs.shards.Shards`, whose edges are not read.
        predictions: A file (see docs/audit.md), scores (nodes, classes) or classes (nodes,) as an
            array or tensor in node order, a :class:`Result`, or a ``torch.nn.Module``, which
            is called with the graph (see ``module_predictions.module_scores``); several as a
            list, or as a mapping from names. They may also come first:
            ``rg.audit(model, graph)``. A list of numbers is one model's classes, and so is a list
            of the names of classes, one for each node; other texts are files.
        by: What nodes are grouped by: "degree", "in-degree", "pagerank", "core", a file of ids and
            values, one value for each node as an array, or a pair (name, such an array).
        bins: "degree" (every value), "quantile:K" or "edges:a,b,c"; by default up to 12 values
            have a group each and more are cut into fifths.
        evaluate: "test" for the test nodes (the default where the graph came with masks, or a
            :class:`Result` was trained on them), "all" for every labeled node outside training and
            validation, "labeled" for every labeled node, also those that were trained on. A split
            that ``rg.read`` made up is used only with "test". Nodes that a file of predictions
            marks as train or val in its column ``split`` are evaluated only with "labeled".
        scores: "auto", or "probabilities", "logits" or "classes" where the choice is wrong.
        resamples: Draws of every bootstrap and of every permutation test.
        seed: The seed of those draws.
        shown: The most single nodes to keep in the result; 0 for none.
        command: The command line, to be shown with how it was computed.
        graph_options: The command line's options that name the graph, its split and the column,
            with their values: shown likewise, without folders, and repeated in the commands of
            the page.

    Returns:
        The figures of every model, and comparisons of every pair of them.

    Raises:
        RawlsError: If the graph, the predictions or an option cannot be used; the message names the
            file and the row, or the argument, and the cure.

    Example:
        >>> import rawlsgcn as rg
        >>> graph = rg.synthetic()
        >>> guesses = graph.y.clone()
        >>> guesses[::3] = 0
        >>> audit = rg.audit(graph, {"mine": guesses}, resamples=100)
        >>> audit.models[0].name, audit.how.nodes
        ('mine', 1000)
        >>> audit.to_frame().columns[:4].tolist()
        ['model', 'group', 'nodes', 'share']
    """
    began = time.perf_counter()
    if isinstance(graph, nn.Module) or (_is_graph(predictions) and not _is_graph(graph)):
        graph, predictions = predictions, graph
    resamples, seed = whole_number("resamples", resamples), whole_number("seed", seed)
    shown = whole_number("shown", shown)
    if resamples < 100:
        raise RawlsError(f"{resamples} resamples are too few for an interval: use at least 100")
    data, incoming = checked_graph(graph, by)
    index = NodeIndex(data.get("node_ids"), int(data.num_nodes))
    class_names = data.get("class_names")
    named = _with_scores(_named(predictions, index.nodes, class_names), graph)
    sources = _sources(named, index, class_names)
    column = _column(data, by, incoming, index)
    marked = marked_split(sources)
    if evaluate != "test" and not any(_is_result(each) for _, each in named):
        data = without_made_split(data, noted=marked is None)
    nodes, evaluated = labeled_nodes(data, evaluate, marked)
    models = [score_nodes(source, nodes, scores) for source in sources]
    chosen, notes = evaluated_nodes(models, nodes, evaluated)
    possible, _ = labeled_nodes(data, "all", marked)
    predicted = int((predicted_by_all(models) & possible.eligible).sum())
    notes += split_notes(marked, nodes, evaluate)
    check_complete(column, chosen, data.get("node_ids"))
    results = {
        source.name: each
        for source, (_, each) in zip(sources, named, strict=True)
        if _is_result(each)
    }
    failed = {name for name, result in results.items() if result.failure is not None}
    models = [
        replace(model.at(chosen), source=_shown_source(source))
        for model, source in zip(models, sources, strict=True)
    ]
    column = NodeColumn(column.name, column.values[chosen])
    grouping = Grouping.of(column, degrees(data)[chosen], bins)
    shown_options = {name: shown_path(value) for name, value in (graph_options or {}).items()}
    figures, comparisons = audit_models(models, nodes.y[chosen], grouping, resamples, seed, failed)
    return Audit(
        graph=str(data.get("name") or "graph"),
        synthetic=bool(data.get("synthetic")),
        column=column.name,
        ordered=column.ordered,
        models=figures,
        comparisons=comparisons,
        how=Provenance(
            version=__version__,
            seed=seed,
            resamples=resamples,
            level=LEVEL,
            by=column.name,
            bins=grouping.description,
            bias_over=grouping.bias_over,
            evaluated=evaluated,
            graph_nodes=int(data.num_nodes),
            graph_edges=int(data.get("num_arcs", data.edge_index.shape[1])) // 2,
            graph_features=isinstance(graph, Shards) or data.get("x") is not None,
            nodes=len(chosen),
            predicted=predicted,
            smallest_group=SMALLEST_GROUP,
            files=shown_options | {model.name: model.source for model in models},
            graph_options=shown_options,
            command=command,
            seconds=time.perf_counter() - began,
        ),
        training_nodes_excluded=evaluate != "labeled"
        and (marked is not None or all(data.get(key) is not None for key in MASKS)),
        nodes=_shown_nodes(data, models, chosen, column, grouping.degree, shown, seed),
        notes=[
            *graph_notes(data),
            *notes,
            *([] if grouping.note is None else [printable(grouping.note)]),
        ],
        results=results,
    )


def _is_result(predictions: Any) -> bool:
    """Whether these are a :class:`Result`, which is not imported here: it imports this module."""
    return hasattr(type(predictions), "best_run")


def _is_graph(value: Any) -> bool:
    """Whether this is a graph, which predictions never are."""
    return isinstance(value, Data) or is_networkx(value)


def _named(
    predictions: Any, nodes: int, class_names: Sequence[str] | None
) -> list[tuple[Any, Any]]:
    """Each model's name, if it has one, and its predictions."""
    if isinstance(predictions, Mapping):
        named = list(predictions.items())
    elif isinstance(predictions, list | tuple) and _are_classes(predictions, nodes, class_names):
        named = [(None, np.array(predictions))]
    elif isinstance(predictions, list | tuple):
        named = [(None, each) for each in predictions]
    else:
        named = [(None, predictions)]
    if not named:
        raise RawlsError("there is nothing to audit: give the predictions of at least one model")
    return named


def _are_classes(values: Sequence[Any], nodes: int, class_names: Sequence[str] | None) -> bool:
    """Whether a list holds the predicted class of each node, and not one model an item."""
    if values and all(isinstance(each, int | float | np.number) for each in values):
        return True
    words = len(values) == nodes and all(isinstance(each, str) for each in values)
    return words and not set(class_names or ()).isdisjoint(values)


def _with_scores(named: list[tuple[Any, Any]], graph: Data | str | Shards) -> list[tuple[Any, Any]]:
    """The same with the scores of each torch module in its place, by the name of its class."""
    if not any(isinstance(each, nn.Module) for _, each in named):
        return named
    if isinstance(graph, Shards):
        raise RawlsError("a module is called with the whole graph: give its predictions of shards")
    data = load(graph) if isinstance(graph, str) else graph
    return [
        (name or type(each).__name__, module_scores(each, data))
        if isinstance(each, nn.Module)
        else (name, each)
        for name, each in named
    ]


def _sources(
    named: Sequence[tuple[Any, Any]], index: NodeIndex, class_names: list[str] | None
) -> list[PredictionSource]:
    """The predictions as they are read; models of the same name are numbered."""
    sources: list[PredictionSource] = []
    for number, (name, each) in enumerate(named, start=1):
        if isinstance(each, str | Path):
            sources.append(AlignedFile(each, index, name, class_names))
        elif _is_result(each):
            run = each.best_run
            words = f"{each.method} on {each.dataset}, seed {each.seeds[run]}"
            logits, title = each.logits[run], name or each.title
            sources.append(AlignedArray(logits, index.nodes, title, words, "logits"))
        else:
            called = name or f"model {number}"
            ordered = in_node_order(each, index, f"predictions '{called}'")
            ordered = in_class_order(ordered, class_names, f"predictions '{called}'")
            sources.append(AlignedArray(ordered, index.nodes, called, class_names=class_names))
    names = [source.name for source in sources]
    for number, source in enumerate(sources, start=1):
        if names.count(source.name) > 1 or source.name in names[: number - 1]:
            source.name = f"{source.name} #{number}"
    return sources


def _shown_source(source: PredictionSource) -> str:
    """The source's name without this machine's folders."""
    return shown_path(source.source) if isinstance(source, AlignedFile) else source.source


def _column(data: Data, by: Any, incoming: Ints | None, index: NodeIndex) -> NodeColumn:
    """What the nodes are grouped by: a built-in column, a file's or the user's."""
    if isinstance(by, str) and by == "in-degree" and incoming is not None:
        data.in_degree = incoming
    if isinstance(by, Path) or (isinstance(by, str) and by not in BUILT_IN and Path(by).is_file()):
        return column_of(data, read_column(Path(by), index))
    if isinstance(by, pd.Series):
        ordered = in_node_order(by, index, "the column to group by")
        return column_of(
            data, (str(by.name), ordered.to_numpy()) if by.name else ordered.to_numpy()
        )
    return column_of(data, by)


def _shown_nodes(
    graph: Data,
    models: Sequence[NodeScores],
    chosen: Ints,
    column: NodeColumn,
    degree: Ints,
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
    return ShownNodes(
        of=len(chosen),
        id=[_plain(names[node]) for node in chosen[kept]],
        value=[_plain(value) for value in column.values[kept]],
        degree=degree[kept].tolist(),
        label=graph.y.numpy()[chosen[kept]].tolist(),
        classes=graph.get("class_names"),
        models=[
            ShownPredictions(model.name, model.predicted[kept].tolist(), model.loss[kept].tolist())
            for model in models
        ],
    )


def _plain(value: Any) -> Any:
    """A Python number or string, which JSON can write."""
    return value.item() if hasattr(value, "item") else value
