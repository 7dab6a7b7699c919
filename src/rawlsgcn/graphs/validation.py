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
from .graph_objects import raw_from_object
from .node_features import (
    all_finite,
    compact,
    dense,
    feature_flaw,
    first_not_finite,
    is_sparse,
    is_structural,
    require_matrix,
    structural_features,
)
from .notes import GraphFacts
from .raw_graph import RawGraph
from .split_choice import choose_split
from .splits import MASKS, SplitChoice, parse_split

MOST_DENSE = 64 << 20
"""The bytes of a unit vector for each node, above which they stay sparse."""


def check(
    data: Any,
    *,
    split: SplitChoice = None,
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
        data: A torch_geometric ``Data``, a networkx graph, or a scipy sparse adjacency matrix.
        split: 'stored', 'paper', 'random', or ratios such as '0.6,0.2,0.2'; by default the stored
            masks if there are any, else the paper's split if the graph is large enough for it,
            else '0.5,0.25,0.25'.
        sparse: Return ``x`` as ``torch.sparse_csr`` if under 10 % of it is non-zero.
        need_features: Raise an error if features are flawed. If there are none, they are made of
            the structure for training (``need_labels``), and missing ones are an error otherwise.
        need_labels: Raise an error if labels or edges are missing or flawed.

    Returns:
        The clean copy.

    Raises:
        RawlsError: If anything that is needed is missing or wrong.
    """
    needs = {"need_features": need_features, "need_labels": need_labels}
    clean = validate(raw_from_object(data), split=split, sparse=sparse, **needs)
    if not isinstance(data, Data):
        return clean
    result = copy.copy(data)
    for key in list(result.keys()):
        if key.startswith("edge_") or key in ("adj_t", "x", "y", *MASKS):
            del result[key]
    for key, value in clean.to_dict().items():
        result[key] = value
    return result


def validate(
    raw: RawGraph,
    *,
    split: SplitChoice = None,
    sparse: bool = True,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Make the graph of what was read, or say in one sentence what is wrong with it.

    Balancing and prediction need no labels, no edges, or no features: flawed ones are then left
    out, and a fact says so. See :func:`check` for the arguments.
    """
    chosen = parse_split(split)
    _refuse_absent(raw, need_features, need_labels)
    need_labels = need_labels or (split is not None and raw.y is not None)
    nodes = _count_nodes(raw, need_features, need_labels)
    _check_edges(raw, nodes, needed=need_labels)
    facts = GraphFacts() if raw.undirected else raw.facts
    edge_index, edge_weight = clean_edges(raw.source, raw.target, raw.weight, nodes, facts)
    if edge_index.size(1) == 0 and need_labels:
        raise RawlsError(
            f"{raw.graph_from} has no edges but self-loops or edges of weight zero: "
            "nothing to learn from"
        )
    graph = Data(edge_index=edge_index, num_nodes=nodes, name=raw.name, synthetic=raw.synthetic)
    if edge_weight is not None:
        if not bool(torch.isfinite(edge_weight).all()):
            raise RawlsError(f"{raw.graph_from}: weights over 3e38 do not fit: divide them first")
        graph.edge_weight = edge_weight
    with _left_out_unless(need_features, "features", raw.facts):
        if raw.x is not None:
            graph.x = _features(raw, nodes, sparse)
            raw.facts.structural_features &= is_structural(graph.x, edge_index)
        elif need_features:
            graph.x = structural_features(edge_index, nodes)
            if not sparse and 4 * nodes**2 <= MOST_DENSE:
                graph.x = graph.x.to_dense()
            raw.facts.structural_features = True
    if raw.y is not None:
        with _left_out_unless(need_labels, "labels", raw.facts):
            graph.y = check_labels(raw, nodes)
    # Whoever needs no labels need not have enough for a split.
    if "y" in graph and (need_labels or set(raw.masks) == set(MASKS)):
        with _left_out_unless(need_labels, "masks", raw.facts):
            choose_split(graph, raw, chosen)
    if raw.node_ids is not None:
        texts = raw.node_ids.dtype == object
        graph.node_ids = raw.node_ids.tolist() if texts else raw.node_ids
    if raw.class_names is not None:
        graph.class_names = raw.class_names
    graph.facts = raw.facts.pairs()
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


def _refuse_absent(raw: RawGraph, need_features: bool, need_labels: bool) -> None:
    """Before anything large is made."""
    cure = "add them to the file, or give a file of their own with --{0} ({0}=...)"
    if need_features and raw.x is None and not need_labels:
        raise RawlsError(f"{raw.graph_from} has no node features: {cure.format('features')}")
    if need_labels and raw.y is None:
        cure = cure.format("labels")
        if some := raw.unused_attributes:
            cure = (
                f"its nodes have the attributes {', '.join(some[:8])}: name the one to learn, as "
                f"in labels='{some[0]}' (in a command: --labels {some[0]})"
            )
        raise RawlsError(f"{raw.graph_from} has no labels: {cure}")


def settle_labels(raw: RawGraph, split: SplitChoice) -> bool:
    """Say whether a graph has labels, for what works without them too.

    Labels that are all -1 are dropped with their masks. A split without labels is an error.
    """
    if raw.y is not None and bool((np.asarray(raw.y) == -1).all()):
        raw.y, raw.masks = None, {}
    if raw.y is None and split is not None:
        raise RawlsError(
            f"{raw.graph_from} has no labels, so that it has no split: leave out the split, or "
            "give --labels (labels=...)"
        )
    return raw.y is not None


def _count_nodes(raw: RawGraph, need_features: bool, need_labels: bool) -> int:
    """The number of nodes, on which everything that is needed must agree."""
    deciding: dict[str, int] = {}
    spare: list[int] = []
    if raw.num_nodes is not None:
        deciding[f"{raw.graph_from} has {{}} nodes"] = raw.num_nodes
    if raw.node_ids is not None:
        deciding[f"{raw.graph_from} has {{}} node ids"] = len(raw.node_ids)
    if raw.x is not None and need_features:
        require_matrix(raw.features_from, raw.x.shape)
        deciding[f"{raw.features_from} has {{}} rows of features"] = int(raw.x.shape[0])
    elif raw.x is not None and raw.x.ndim == 2:
        spare.append(int(raw.x.shape[0]))
    if raw.y is not None:
        raw.y = np.atleast_1d(raw.y)
        if need_labels:
            deciding[f"{raw.labels_from} has {{}} labels"] = len(raw.y)
        else:
            spare.append(len(raw.y))
    require_same_sizes(deciding)
    named = raw.highest_node() + 1
    fitting = [*deciding.values(), *(count for count in spare if count >= named), named]
    if fitting[0] == 0:
        raise RawlsError(f"{raw.graph_from} has no nodes")
    return raw.checked_count(fitting[0])


def require_same_sizes(sizes: dict[str, int]) -> None:
    """Refuse numbers of nodes that are not the same; the sentences they are keyed by say whose."""
    if len(set(sizes.values())) > 1:
        first, *others = (sentence.format(size) for sentence, size in sizes.items())
        raise RawlsError(
            f"sizes disagree: {first}, but {' and '.join(others)}: give one of each for every node"
        )


def _check_edges(raw: RawGraph, nodes: int, needed: bool) -> None:
    where = raw.graph_from
    if len(raw.source) == 0 and needed:
        raise RawlsError(f"{where} has no edges")
    for side in (raw.source, raw.target):
        for bad in (side.min(), side.max()) if len(side) else ():
            if not 0 <= bad < nodes:
                raise RawlsError(
                    f"{where}: an edge names node {bad}, which is out of range: "
                    f"the {nodes} nodes are numbered from 0 to {nodes - 1}"
                )
    raw.source, raw.target = (
        side.astype(np.int64, copy=False) for side in (raw.source, raw.target)
    )
    if raw.weight is None:
        return
    weight = raw.weight = _as_column(raw.weight)
    if weight.shape != raw.source.shape:
        raise RawlsError(
            f"sizes disagree: {where} has {len(raw.source)} edges, "
            f"but weights of the shape {tuple(weight.shape)}"
        )
    if weight.dtype.kind not in "biuf":
        raise RawlsError(f"{where}: edge weights must be numbers, not {weight.dtype}")
    bad_edges = ~(np.isfinite(weight) & (weight >= 0))
    if bad_edges.any():
        first = int(bad_edges.argmax())
        ends = f"{raw.named(int(raw.source[first]))} and {raw.named(int(raw.target[first]))}"
        raise RawlsError(
            f"{where}: the edge between {ends} has the weight {weight[first]}: "
            "weights must be finite and not negative"
        )


def _as_column(values: NDArray[Any]) -> NDArray[Any]:
    """A matrix of one column as that column."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _features(raw: RawGraph, nodes: int, sparse: bool) -> Tensor:
    where, kind = raw.features_from, raw.x.dtype
    require_matrix(raw.features_from, raw.x.shape)
    if raw.x.shape[0] != nodes:
        raise RawlsError(f"{where} has {raw.x.shape[0]} rows of features for {nodes} nodes")
    if getattr(kind, "is_complex", False) or getattr(kind, "kind", "f") not in "biuf":
        raise RawlsError(f"{where}: features must be real numbers, not {kind}")
    # What is sparse is checked so: a dense matrix of it may be a thousand times as large.
    x = compact(raw.x) if sparse or is_sparse(raw.x) else dense(raw.x)
    row = first_not_finite(x)
    if row is not None:
        raise RawlsError(f"{where}: {raw.named(row)} {feature_flaw(all_finite(raw.x))}")
    return x if sparse else dense(x)


def check_labels(raw: RawGraph, nodes: int) -> Tensor:
    """Return the labels y as int64: one integer for each node, -1 where it has none."""
    where, y = raw.labels_from, _as_column(np.asarray(raw.y))
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        what = f"the shape {tuple(y.shape)}" if y.ndim != 1 else f"the type {y.dtype}"
        raise RawlsError(f"{where}: labels must be one integer for each node, they have {what}")
    if len(y) != nodes:
        raise RawlsError(f"{where} has {len(y)} labels for {nodes} nodes")
    whole = np.floor(y) if y.dtype.kind == "f" else y
    outside = (y < -1) | (y >= max(len(y), 2))
    for wrong, flaw in (
        (y != y, "no label: write -1 for an unlabeled node"),
        (y != whole, "the label {}: labels must be integers"),
        (outside, "the label {}: number the classes 0, 1, 2, … and write -1 for an unlabeled node"),
    ):
        if wrong.any():
            first = int(wrong.argmax())
            raise RawlsError(f"{raw.named_label(first)} has {flaw.format(y[first])}")
    labels = y.astype(np.int64)
    sizes = np.bincount(labels[labels >= 0])
    raw.facts.empty_classes = np.flatnonzero(sizes == 0).tolist()
    return torch.from_numpy(labels)
