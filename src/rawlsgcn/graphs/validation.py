"""The validation of every graph, read or given: the same checks, and the same form afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .edges import clean_edges
from .features import all_finite, compact, dense, first_not_finite
from .notes import GraphFacts
from .raw_graph import RawGraph, check_count, clean_ids, highest, raw_from_data, stored_in
from .splits import MASKS, choose_split, require_split


def check(
    data: Data,
    *,
    split: str | None = None,
    sparse: bool = False,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Validate a graph and return a clean copy; the graph given is not changed.

    The copy is on the CPU. Its edges go both ways, sorted, each once and without self-loops; ``x``
    is float32, ``y`` int64, and the three masks are there. ``facts`` lists what was changed, which
    :func:`graph_notes` says in sentences. Further attributes are kept, except edge attributes:
    the edges may be others now.

    Args:
        data: A torch_geometric ``Data``.
        split: 'stored', 'paper' or 'random'; by default the stored masks if there are any, else
            the paper's split if the graph is large enough for it, else a random one.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero.
        need_features: Raise an error if features are missing or flawed.
        need_labels: Raise an error if labels or edges are missing or flawed.

    Returns:
        The clean copy.

    Raises:
        RawlsError: If anything that is needed is missing or wrong.
    """
    clean = validate(
        raw_from_data(data),
        split=split,
        sparse=sparse,
        need_features=need_features,
        need_labels=need_labels,
    )
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
    sparse: bool = True,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Make the graph of what was read, or say in one sentence what is wrong with it.

    Balancing and prediction need no labels, no edges, or no features: flawed ones are then left
    out, and a fact says so. See :func:`check` for the arguments.
    """
    require_split(split)
    _refuse_absent(found, need_features, need_labels)
    need_labels = need_labels or (split is not None and found.y is not None)
    nodes = _count_nodes(found, need_features, need_labels)
    _check_edges(found, nodes, needed=need_labels)
    facts = GraphFacts() if found.undirected else found.facts
    edge_index, edge_weight = clean_edges(found.source, found.target, found.weight, nodes, facts)
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
    if found.x is not None:
        with _left_out_unless(need_features, "features", found.facts):
            graph.x = _features(found, nodes, sparse)
    if found.y is not None:
        with _left_out_unless(need_labels, "labels", found.facts):
            graph.y = _labels(found, nodes)
    # Whoever needs no labels need not have enough for a split.
    if "y" in graph and (need_labels or set(found.masks) == set(MASKS)):
        with _left_out_unless(need_labels, "masks", found.facts):
            choose_split(graph, found, split)
    if found.node_ids is not None:
        ids = np.asarray(found.node_ids)
        graph.node_ids = ids.tolist() if ids.dtype == object else ids
    if found.class_names is not None:
        graph.class_names = found.class_names
    graph.facts = found.facts.pairs()
    return graph


@contextmanager
def _left_out_unless(needed: bool, what: str, facts: GraphFacts) -> Iterator[None]:
    """Raise the error of a piece that is needed; leave another one out, and keep the reason."""
    try:
        yield
    except RawlsError as error:
        if needed:
            raise
        facts.left_out.append((what, str(error)))


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


def _features(found: RawGraph, nodes: int, sparse: bool) -> Tensor:
    where, kind = found.features_from, found.x.dtype
    _check_matrix(found)
    if found.x.shape[0] != nodes:
        raise RawlsError(f"{where} has {found.x.shape[0]} rows of features for {nodes} nodes")
    if getattr(kind, "is_complex", False) or getattr(kind, "kind", "f") not in "biuf":
        raise RawlsError(f"{where}: features must be real numbers, not {kind}")
    x = compact(found.x) if sparse else dense(found.x)
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


def _labels(found: RawGraph, nodes: int) -> Tensor:
    """Return the labels y as int64: one integer for each node, -1 where it has none."""
    where, y = found.labels_from, np.asarray(found.y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        what = f"the shape {tuple(y.shape)}" if y.ndim != 1 else f"the type {y.dtype}"
        raise RawlsError(f"{where}: labels must be one integer for each node, they have {what}")
    if len(y) != nodes:
        raise RawlsError(f"{where} has {len(y)} labels for {nodes} nodes")
    if y.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(y))
        if len(missing):
            raise RawlsError(_missing_labels(found, missing))
        broken = np.flatnonzero(y != np.floor(y))
        if len(broken):
            first = int(broken[0])
            raise RawlsError(
                f"{where}: {found.who(first)} has the label {y[first]}: labels must be integers"
            )
    wrong = np.flatnonzero((y < -1) | (y >= max(len(y), 2)))
    if len(wrong):
        first = int(wrong[0])
        raise RawlsError(
            f"{where}: {found.who(first)} has the label {y[first]}: number the classes 0, 1, 2, … "
            "and write -1 for an unlabeled node"
        )
    labels = y.astype(np.int64)
    sizes = np.bincount(labels[labels >= 0])
    found.facts.empty_classes = np.flatnonzero(sizes == 0).tolist()
    return torch.from_numpy(labels)


def _missing_labels(found: RawGraph, missing: NDArray[Any]) -> str:
    named = ", ".join(found.who(int(node)) for node in missing[:3])
    more = f" and {len(missing) - 3} others have" if len(missing) > 3 else " has"
    if 1 < len(missing) <= 3:
        more = " have"
    return f"{found.labels_from}: {named}{more} no label: write -1 for an unlabeled node"
