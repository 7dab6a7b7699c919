"""``rg.audit``: who is worst off under the predictions of any model, and how sure that is."""

from __future__ import annotations

import copy
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

from ..._core import __version__
from ..._core.argument_checks import whole_number
from ..._core.errors import RawlsError
from ..._core.redaction import shown_path
from ..._core.text import printable
from ..._core.threads import fork_safe_threads
from ...evaluation.audit.grouping import Grouping
from ...evaluation.audit.intervals import LEVEL
from ...evaluation.audit.model_audit import audit_models
from ...evaluation.audit.node_scores import NodeScores, score_nodes
from ...evaluation.degree_bias import SMALLEST_GROUP
from ...evaluation.node_centralities import BUILT_IN, NodeColumn, check_complete, column_of, degrees
from ...evaluation.node_index import NodeIndex, read_column
from ...evaluation.prediction_formats import FOUND_LOGITS
from ...evaluation.prediction_tables import label_column
from ...evaluation.predictions import Predictions
from ...graphs import check, graph_notes, load
from ...graphs.edges import in_degrees, is_symmetric
from ...graphs.graph_objects import raw_from_object
from ...graphs.notes import GraphFacts
from ...graphs.raw_graph import RawGraph
from ...graphs.readers.node_link import is_networkx
from ...graphs.shards.shard_graph import ShardNodes
from ...graphs.shards.shards import MANIFEST, Shards
from ...graphs.splits import MASKS
from ...graphs.validation import validate
from .audit_result import Audit, Provenance, ShownNodes, ShownPredictions
from .evaluated_nodes import (
    evaluated_nodes,
    labeled_nodes,
    marked_split,
    split_notes,
    without_made_split,
)
from .prediction_sources import prediction_sources

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
        predictions: A file (see docs/audit.md) or a DataFrame with the columns of one, scores
            (nodes, classes) or classes (nodes,) as an array or tensor in node order or a Series
            with node ids as its index, a :class:`Result`, or a ``torch.nn.Module``, which
            is called once with the parts of the graph that its ``forward`` names; several as a
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
    is_graph = [isinstance(each, Data) or is_networkx(each) for each in (graph, predictions)]
    if isinstance(graph, nn.Module) or is_graph == [False, True]:
        graph, predictions = predictions, graph
    resamples, seed = whole_number(resamples, "resamples"), whole_number(seed, "seed")
    shown = whole_number(shown, "shown")
    if resamples < 100:
        raise RawlsError(f"{resamples} resamples are too few for an interval: use at least 100")
    data = _checked_graph(graph, by, predictions)
    index = NodeIndex(data.get("node_ids"), int(data.num_nodes))
    class_names = data.get("class_names")
    sources, results = prediction_sources(predictions, graph, index, class_names)
    data = _without_read_columns(data, sources)
    column = _column(data, by, index)
    marked = marked_split(sources)
    if evaluate != "test" and not results:
        data = without_made_split(data, noted=marked is None)
    nodes, evaluated = labeled_nodes(data, evaluate, marked)
    models = [score_nodes(source, nodes, scores) for source in sources]
    predicted = np.all([model.predicted >= 0 for model in models], axis=0)
    possible = predicted & labeled_nodes(data, "all", marked)[0].eligible
    chosen, notes = evaluated_nodes(predicted, nodes, evaluated, possible.any(), len(models))
    notes += split_notes(marked, nodes, evaluate)
    notes += [
        f"the scores of '{printable(model.name)}' are taken for logits, as {FOUND_LOGITS}; "
        "--scores (scores=) says otherwise."
        for model in models
        if model.format_reason == FOUND_LOGITS
    ]
    check_complete(column, chosen, data.get("node_ids"))
    failed = {name for name, result in results.items() if result.failure is not None}
    models = [
        # Without this machine's folders.
        replace(model.at(chosen), source=shown_path(model.source) if source.path else model.source)
        for model, source in zip(models, sources, strict=True)
    ]
    grouping = Grouping.of(
        NodeColumn(column.name, column.values[chosen]), degrees(data)[chosen], bins
    )
    notes = [*graph_notes(data), *notes, *map(printable, filter(None, [grouping.note]))]
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
            predicted=int(possible.sum()),
            smallest_group=SMALLEST_GROUP,
            files=shown_options | {model.name: model.source for model in models},
            graph_options=shown_options,
            command=command,
            seconds=time.perf_counter() - began,
        ),
        training_nodes_excluded=evaluate != "labeled"
        and (marked is not None or all(data.get(key) is not None for key in MASKS)),
        nodes=_shown_nodes(data, models, chosen, grouping, shown, seed) if shown else None,
        notes=notes,
        results=results,
    )


def _checked_graph(graph: Any, by: Any, predictions: Any) -> Data:
    """Check the graph, and count its in-degrees if nodes are grouped by them.

    Of shards only the degrees, labels and masks are read, not the edges. The command gives a
    ``RawGraph``, of which also the directions are known.
    """
    if isinstance(graph, Shards):
        if isinstance(by, str) and by in BUILT_IN and by != "degree":
            raise RawlsError(
                f"the {by} of nodes needs all edges and their directions in memory, which an audit "
                "of shards does not read: audit the file with --graph, or group by degree or by a "
                "column: --by FILE (by=(name, values))"
            )
        return ShardNodes.of(graph).graph
    if isinstance(graph, str):
        if (Path(graph) / MANIFEST).is_file():
            raise RawlsError(
                f"'{graph}' is a folder of shards, and a text is the name of a dataset: give "
                f"rawlsgcn.graphs.shards.Shards('{graph}')"
            )
        return load(graph, sparse=True)
    from_file = isinstance(graph, RawGraph)
    checked = validate if from_file else check
    data = checked(graph, sparse=True, need_features=False, need_labels=False)
    if isinstance(by, str) and by == "in-degree" and data.get("in_degree") is None:
        raw = graph if from_file else raw_from_object(graph)
        ends = raw.source, raw.target, int(data.num_nodes)
        # Where every edge goes both ways the directions are not known, or there never were any.
        if from_file or not is_symmetric(*ends):
            data.in_degree = in_degrees(*ends)
    if data.get("y") is None:
        cure = "give them as data.y"
        if from_file:
            found = ((each, label_column(each)) for each in predictions)
            both = [f"--labels {file}, which has {column}" for file, column in found if column]
            cure = f"give {both[0]}" if both else "give them with --labels"
        why = dict(GraphFacts.of(data).left_out).get("labels", cure)
        raise RawlsError(f"there are no labels to compare the predictions with: {why}")
    return data


def _without_read_columns(data: Data, sources: Sequence[Predictions]) -> Data:
    """Without the note on columns beside the labels, where that file has the predictions too."""
    read = {source.path.name for source in sources if source.path}
    data, facts = copy.copy(data), GraphFacts.of(data)
    facts.columns_ignored = [each for each in facts.columns_ignored if each[0] not in read]
    data.facts = facts.pairs()
    return data


def _column(data: Data, by: Any, index: NodeIndex) -> NodeColumn:
    """What the nodes are grouped by: a built-in column, a file's or the user's."""
    if isinstance(by, Path) or (isinstance(by, str) and by not in BUILT_IN and Path(by).is_file()):
        return column_of(data, read_column(Path(by), index))
    if isinstance(by, pd.Series):
        values = index.in_order(by, "the column to group by").to_numpy()
        return column_of(data, (str(by.name), values) if by.name else values)
    return column_of(data, by)


def _shown_nodes(
    graph: Data,
    models: Sequence[NodeScores],
    chosen: Ints,
    grouping: Grouping,
    most: int,
    seed: int,
) -> ShownNodes:
    """The nodes for the explorer; of more than ``most`` a sample drawn without replacement."""
    kept = np.arange(len(chosen))
    if len(chosen) > most:
        rng = np.random.default_rng([seed, 7])
        kept = np.sort(rng.choice(len(chosen), most, replace=False))
    ids: Any = graph.get("node_ids")
    names = [node if ids is None else ids[node] for node in chosen[kept]]
    return ShownNodes(
        of=len(chosen),
        id=[name.item() if hasattr(name, "item") else name for name in names],
        value=grouping.column.values[kept].tolist(),
        degree=grouping.degree[kept].tolist(),
        label=graph.y.numpy()[chosen[kept]].tolist(),
        classes=graph.get("class_names"),
        models=[
            ShownPredictions(model.name, model.predicted[kept].tolist(), model.loss[kept].tolist())
            for model in models
        ],
    )
