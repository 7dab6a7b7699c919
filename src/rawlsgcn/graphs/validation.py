"""The door: every graph, read or given, passes the same checks and leaves in the same form."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .edges import clean_edges
from .features import all_finite, compact, first_not_finite
from .labels import choose_split, clean_labels
from .raw_graph import RawGraph, check_count, clean_ids, highest, raw_from_data, stored_in
from .splits import MASKS, require_split


def check(
    data: Data,
    *,
    split: str | None = None,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """A clean copy of a torch_geometric ``Data``; the one given is not touched.

    The copy lies on the CPU, its edges go both ways, sorted, each once and without self-loops;
    ``x`` is float32 (sparse under 10 % density), ``y`` int64, the three masks are there, and
    ``notes`` says in sentences what was changed. Attributes of the user's own are kept, except
    edge attributes, whose edges may be others now.
    """
    found = raw_from_data(data)
    clean = validate(found, split=split, need_features=need_features, need_labels=need_labels)
    result = copy.copy(data)
    for key in list(result.keys()):
        if key.startswith("edge_") or key in ("adj_t", "x", "y", *MASKS):
            del result[key]
    for key, value in clean.to_dict().items():
        result[key] = value
    return result


def validate(
    found: RawGraph,
    *,
    split: str | None = None,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Check what was found and make the graph of it, or say in one sentence what is wrong.

    ``split`` is 'stored', 'paper' or 'random'; by default the stored masks if there are any,
    else the paper's split if the graph is large enough for it, else a random one. Who only
    balances or predicts needs no labels, no edges, or no features: flawed ones are then left
    out, and a note says so.
    """
    require_split(split)
    _refuse_absent(found, need_features, need_labels)
    need_labels = need_labels or (split is not None and found.y is not None)
    nodes = _count_nodes(found, need_features, need_labels)
    _check_edges(found, nodes, needed=need_labels)
    edge_index, edge_weight, notes = clean_edges(found.source, found.target, found.weight, nodes)
    if edge_index.size(1) == 0 and need_labels:
        raise RawlsError(
            f"{found.graph_from} has no edges but self-loops or edges of weight zero: "
            "nothing to learn from"
        )
    graph = Data(edge_index=edge_index, num_nodes=nodes, name=found.name)
    graph.synthetic = found.synthetic
    if edge_weight is not None:
        if not bool(torch.isfinite(edge_weight).all()):
            raise RawlsError(f"{found.graph_from}: weights over 3e38 do not fit: divide them first")
        graph.edge_weight = edge_weight
    notes = [*found.notes, *notes]
    if found.x is not None:
        with _left_out_unless(need_features, "features", notes):
            graph.x = _features(found, nodes)
    if found.y is not None:
        with _left_out_unless(need_labels, "labels", notes):
            graph.y = clean_labels(found, nodes, notes)
    # Whoever needs no labels need not have enough for a split.
    if "y" in graph and (need_labels or set(found.masks) == set(MASKS)):
        with _left_out_unless(need_labels, "masks", notes):
            choose_split(graph, found, split, notes)
    if found.node_ids is not None:
        ids = np.asarray(found.node_ids)
        graph.node_ids = ids.tolist() if ids.dtype == object else ids
    graph.notes = list(dict.fromkeys(notes))  # a graph may pass the door twice
    return graph


@contextmanager
def _left_out_unless(needed: bool, what: str, notes: list[str]) -> Iterator[None]:
    """Refuse the flaw of a needed piece; another is left out, with a note."""
    try:
        yield
    except RawlsError as error:
        if needed:
            raise
        notes.append(f"the {what} are left out, as nothing here needs them: {error}.")


def _refuse_absent(found: RawGraph, need_features: bool, need_labels: bool) -> None:
    """Before anything large is made."""
    if need_features and found.x is None:
        raise RawlsError(
            f"{found.graph_from} has no node features: add them to the file, "
            "or give a file of their own with --features (features=...)"
        )
    if need_labels and found.y is None:
        raise RawlsError(
            f"{found.graph_from} has no labels: add them to the file, "
            "or give a file of their own with --labels (labels=...)"
        )


def _count_nodes(found: RawGraph, need_features: bool, need_labels: bool) -> int:
    """The number of nodes, on which everything that is needed must agree."""
    deciding: dict[str, int] = {}
    spare: list[int] = []
    if found.num_nodes is not None:
        deciding[f"{found.graph_from} has {{}} nodes"] = found.num_nodes
    if found.node_ids is not None:
        found.node_ids = clean_ids(found.node_ids, found.graph_from)
        deciding[f"{found.graph_from} has {{}} node ids"] = len(found.node_ids)
    if found.x is not None and need_features:
        _check_matrix(found)
        deciding[f"{found.features_from} has {{}} rows of features"] = int(found.x.shape[0])
    elif found.x is not None and found.x.ndim == 2:
        spare.append(int(found.x.shape[0]))
    if found.y is not None:
        found.y = np.atleast_1d(found.y)
        if need_labels:
            deciding[f"{found.labels_from} has {{}} labels"] = len(found.y)
        else:
            spare.append(len(found.y))
    if len(set(deciding.values())) > 1:
        said = [sentence.format(count) for sentence, count in deciding.items()]
        raise RawlsError(f"sizes disagree: {', but '.join(said)}")
    if deciding:
        nodes = next(iter(deciding.values()))
    else:
        named = highest(found) + 1
        nodes = next((count for count in spare if count >= named), named)
    if nodes == 0:
        raise RawlsError(f"{found.graph_from} has no nodes")
    return check_count(nodes, found.graph_from, stored_in(found))


def _check_edges(found: RawGraph, nodes: int, needed: bool) -> None:
    where = found.graph_from
    if len(found.source) == 0 and needed:
        raise RawlsError(f"{where} has no edges")
    for side in (found.source, found.target):
        for bad in (side.min(), side.max()) if len(side) else ():
            if not 0 <= bad < nodes:
                raise RawlsError(
                    f"{where}: an edge names node {bad}, which is out of range: "
                    f"the {nodes} nodes are numbered from 0 to {nodes - 1}"
                )
    found.source, found.target = (
        side.astype(np.int64, copy=False) for side in (found.source, found.target)
    )
    weight = found.weight
    if weight is None:
        return
    if weight.ndim == 2 and weight.shape[1] == 1:
        weight = found.weight = weight[:, 0]
    if weight.shape != found.source.shape:
        raise RawlsError(
            f"sizes disagree: {where} has {len(found.source)} edges, "
            f"but weights of the shape {tuple(weight.shape)}"
        )
    if weight.dtype.kind not in "biuf":
        raise RawlsError(f"{where}: edge weights must be numbers, not {weight.dtype}")
    bad_edges = ~(np.isfinite(weight) & (weight >= 0))
    if bad_edges.any():
        first = int(bad_edges.argmax())
        ends = f"{found.who(int(found.source[first]))} and {found.who(int(found.target[first]))}"
        raise RawlsError(
            f"{where}: the edge between {ends} has the weight {weight[first]}: "
            "weights must be finite and not negative"
        )


def _check_matrix(found: RawGraph) -> None:
    if found.x.ndim != 2 or found.x.shape[1] == 0:
        raise RawlsError(
            f"{found.features_from}: features must be a matrix with a row for each node, "
            f"they have the shape {tuple(found.x.shape)}"
        )


def _features(found: RawGraph, nodes: int) -> Tensor:
    where, kind = found.features_from, found.x.dtype
    _check_matrix(found)
    if found.x.shape[0] != nodes:
        raise RawlsError(f"{where} has {found.x.shape[0]} rows of features for {nodes} nodes")
    if getattr(kind, "is_complex", False) or getattr(kind, "kind", "f") not in "biuf":
        raise RawlsError(f"{where}: features must be real numbers, not {kind}")
    x = compact(found.x)
    row = first_not_finite(x)
    if row is not None and all_finite(found.x):
        raise RawlsError(
            f"{where}: {found.who(row)} has a feature over 3e38, the largest number of single "
            "precision: divide that column first"
        )
    if row is not None:
        raise RawlsError(
            f"{where}: {found.who(row)} has a feature that is NaN or infinite: "
            "fill it in or leave that column out"
        )
    return x
