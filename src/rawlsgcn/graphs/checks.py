"""The door: every graph, read or given, passes the same checks and leaves in the same form."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ..errors import RawlsError, unknown_name
from .edges import clean_edges
from .features import compact, first_not_finite
from .found import MASKS, Found
from .masks import choose_split
from .splits import SPLITS

Array = NDArray[Any]


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
    found = found_in(data)
    clean = assemble(found, split=split, need_features=need_features, need_labels=need_labels)
    result = copy.copy(data)
    for key in [*(k for k in result.keys() if k.startswith("edge_")), "adj_t"]:  # noqa: SIM118
        if key in result:
            del result[key]
    for key, value in clean.to_dict().items():
        result[key] = value
    return result


def assemble(
    found: Found,
    *,
    split: str | None = None,
    need_features: bool = True,
    need_labels: bool = True,
) -> Data:
    """Check what was found and make the graph of it, or say in one sentence what is wrong.

    ``split`` is 'stored', 'paper' or 'random'; by default the stored masks if there are any,
    else the paper's split if the graph is large enough for it, else a random one.
    """
    if split is not None and split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    nodes = _count_nodes(found)
    _check_edges(found, nodes)
    edge_index, edge_weight, notes = clean_edges(found.source, found.target, found.weight, nodes)
    if edge_index.size(1) == 0:
        raise RawlsError(f"{found.graph_from} has no edges but self-loops: nothing to learn from")
    graph = Data(edge_index=edge_index, num_nodes=nodes, name=found.name)
    graph.synthetic = found.synthetic
    if edge_weight is not None:
        if not bool(torch.isfinite(edge_weight).all()):
            raise RawlsError(f"{found.graph_from}: weights over 3e38 do not fit: divide them first")
        graph.edge_weight = edge_weight
    graph.notes = [*found.notes, *notes]
    if found.x is not None:
        graph.x = _features(found)
    elif need_features:
        raise RawlsError(
            f"{found.graph_from} has no node features: add them to the file, "
            "or give a file of their own with --features (features=...)"
        )
    if found.y is not None:
        graph.y = _labels(found, graph.notes)
        # Whoever needs no labels (balancing, predicting) need not have enough for a split.
        if need_labels or split is not None or set(found.masks) == set(MASKS):
            choose_split(graph, found, split)
    elif need_labels:
        raise RawlsError(
            f"{found.graph_from} has no labels: add them to the file, "
            "or give a file of their own with --labels (labels=...)"
        )
    if found.node_ids is not None:
        graph.node_ids = found.node_ids
    return graph


def found_in(data: Any, where: str = "the graph") -> Found:
    """The pieces of a torch_geometric ``Data``."""
    if not isinstance(data, Data):
        hint = ": convert it with .to_homogeneous()" if hasattr(data, "to_homogeneous") else ""
        raise RawlsError(f"a graph must be a torch_geometric Data, not {type(data).__name__}{hint}")
    edge_index, weight = data.edge_index, data.get("edge_weight")
    if edge_index is None and isinstance(data.get("adj_t"), Tensor):
        from torch_geometric.utils import to_edge_index

        edge_index, weight = to_edge_index(data.adj_t)
    if edge_index is None:
        raise RawlsError(f"{where} has no edge_index: give its edges as a (2, edges) tensor")
    source, target = endpoints(_numpy(edge_index), where)
    notes = list(data.get("notes") or [])
    if data.get("edge_attr") is not None:
        notes.append("edge_attr is not used: put edge weights into edge_weight.")
    name = data.get("name")
    y = data.y
    return Found(
        name=name if isinstance(name, str) else "graph",
        source=source,
        target=target,
        weight=None if weight is None else _numpy(weight),
        num_nodes=data.num_nodes if "num_nodes" in data else None,
        x=data.x if data.x is None or isinstance(data.x, Tensor) else _numpy(data.x),
        y=None if y is None else _numpy(y),
        masks={key: _numpy(data[key]) for key in MASKS if data.get(key) is not None},
        node_ids=data.get("node_ids"),
        synthetic=bool(data.get("synthetic", False)),
        notes=notes,
        graph_from=where,
        features_from=where,
        labels_from=where,
    )


def _numpy(value: Any) -> Array:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
    try:
        return np.asarray(value)
    except ValueError as error:
        raise RawlsError("the graph holds lists of different lengths: give tensors") from error


def endpoints(edge_index: Array, where: str) -> tuple[Array, Array]:
    """The two rows of an edge index, also when it is given as one edge a row."""
    if edge_index.ndim == 2 and edge_index.shape[0] != 2 and edge_index.shape[1] == 2:
        edge_index = edge_index.T
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise RawlsError(
            f"{where}: edge_index has the shape {tuple(edge_index.shape)}, it must be (2, edges)"
        )
    if edge_index.dtype.kind not in "iu":
        raise RawlsError(f"{where}: edge_index must hold integers, not {edge_index.dtype}")
    return edge_index[0], edge_index[1]


def _count_nodes(found: Found) -> int:
    """The number of nodes, on which everything that was found must agree."""
    counts: dict[str, int] = {}
    if found.num_nodes is not None:
        counts[f"{found.graph_from} has {{}} nodes"] = int(found.num_nodes)
    if found.x is not None:
        if found.x.ndim != 2 or found.x.shape[1] == 0:
            raise RawlsError(
                f"{found.features_from}: features must be a matrix with a row for each node, "
                f"they have the shape {tuple(found.x.shape)}"
            )
        counts[f"{found.features_from} has {{}} rows of features"] = int(found.x.shape[0])
    if found.y is not None:
        found.y = np.atleast_1d(found.y)
        counts[f"{found.labels_from} has {{}} labels"] = len(found.y)
    if found.node_ids is not None:
        counts[f"{found.graph_from} has {{}} node ids"] = len(found.node_ids)
    if not counts:
        if len(found.source) == 0:
            raise RawlsError(f"{found.graph_from} has no nodes and no edges")
        return int(max(found.source.max(), found.target.max())) + 1
    said = [sentence.format(count) for sentence, count in counts.items()]
    if len(set(counts.values())) > 1:
        raise RawlsError(f"sizes disagree: {', but '.join(said)}")
    nodes = next(iter(counts.values()))
    if nodes == 0:
        raise RawlsError(f"{found.graph_from} has no nodes")
    return nodes


def _check_edges(found: Found, nodes: int) -> None:
    where = found.graph_from
    if len(found.source) == 0:
        raise RawlsError(f"{where} has no edges")
    for side in (found.source, found.target):
        for bad in (side.min(), side.max()):
            if not 0 <= bad < nodes:
                raise RawlsError(
                    f"{where}: an edge names node {bad}, which is out of range: "
                    f"the {nodes} nodes are numbered from 0 to {nodes - 1}"
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


def _features(found: Found) -> Tensor:
    kind = found.x.dtype
    if getattr(kind, "is_complex", False) or getattr(kind, "kind", "f") not in "biuf":
        raise RawlsError(f"{found.features_from}: features must be real numbers, not {kind}")
    x = compact(found.x)
    row = first_not_finite(x)
    if row is not None:
        raise RawlsError(
            f"{found.features_from}: {found.who(row)} has a feature that is NaN or infinite: "
            "fill it in or leave that column out"
        )
    return x


def _labels(found: Found, notes: list[str]) -> Tensor:
    where, y = found.labels_from, np.asarray(found.y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "biuf":
        what = f"the shape {tuple(y.shape)}" if y.ndim != 1 else f"the type {y.dtype}"
        raise RawlsError(f"{where}: labels must be one integer for each node, they have {what}")
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
            "and write -1 for an unlabelled node"
        )
    labels = y.astype(np.int64)
    sizes = np.bincount(labels[labels >= 0])
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        which = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        notes.append(f"no node has the label {which}, though higher labels are used.")
    return torch.from_numpy(labels)


def _missing_labels(found: Found, missing: Array) -> str:
    named = ", ".join(found.who(int(node)) for node in missing[:3])
    more = f" and {len(missing) - 3} others have" if len(missing) > 3 else " has"
    if 1 < len(missing) <= 3:
        more = " have"
    return f"{found.labels_from}: {named}{more} no label: write -1 for an unlabelled node"
