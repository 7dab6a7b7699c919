"""The pieces of a torch_geometric ``Data`` that the user made, and of the arrays in his files."""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ..errors import RawlsError
from .found import MASKS, Found

Array = NDArray[Any]
_BYTES_A_NODE = 64
"""The least that a node costs: its place in a CSR matrix and in a few vectors over the nodes."""


def found_in(data: Any, where: str = "the graph") -> Found:
    """The pieces of a torch_geometric ``Data``."""
    if not isinstance(data, Data):
        hint = ": convert it with .to_homogeneous()" if hasattr(data, "to_homogeneous") else ""
        raise RawlsError(f"a graph must be a torch_geometric Data, not {type(data).__name__}{hint}")
    edge_index, weight = data.edge_index, data.get("edge_weight")
    num_nodes = data.num_nodes if "num_nodes" in data else None
    if edge_index is None and isinstance(data.get("adj_t"), Tensor):
        edge_index, weight = _edges_of(data.adj_t, where)
        num_nodes = data.adj_t.size(0) if num_nodes is None else num_nodes
    if edge_index is None:
        raise RawlsError(f"{where} has no edge_index: give its edges as a (2, edges) tensor")
    source, target = endpoints(_numpy(edge_index), where)
    notes = _notes(data.get("notes"), where)
    if data.get("edge_attr") is not None:
        notes.append("edge_attr is not used: put edge weights into edge_weight.")
    name, x, y, node_ids = data.get("name"), data.x, data.y, data.get("node_ids")
    if node_ids is not None and not hasattr(node_ids, "__len__"):
        raise RawlsError(f"{where}: node_ids must be a list with an id for each node")
    return Found(
        name=name if isinstance(name, str) else "graph",
        source=source,
        target=target,
        weight=None if weight is None else _numpy(weight),
        num_nodes=None if num_nodes is None else node_count(num_nodes, where),
        x=x if x is None or isinstance(x, Tensor) or sp.issparse(x) else _numpy(x),
        y=None if y is None else _numpy(y),
        masks={key: _numpy(data[key]) for key in MASKS if data.get(key) is not None},
        node_ids=_numpy(node_ids) if isinstance(node_ids, Tensor) else node_ids,
        synthetic=bool(data.get("synthetic", False)),
        notes=notes,
        graph_from=where,
        features_from=where,
        labels_from=where,
    )


def endpoints(edge_index: Array, where: str) -> tuple[Array, Array]:
    """The two rows of an edge index, also when it is given as one edge a row."""
    if edge_index.ndim == 2 and edge_index.shape[0] != 2 and edge_index.shape[1] == 2:
        edge_index = edge_index.T
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise RawlsError(
            f"{where}: edge_index has the shape {tuple(edge_index.shape)}, it must be (2, edges)"
        )
    if edge_index.size == 0:
        edge_index = edge_index.astype(np.int64)  # an empty list is one of floats
    if edge_index.dtype.kind not in "iu":
        raise RawlsError(f"{where}: edge_index must hold integers, not {edge_index.dtype}")
    return edge_index[0], edge_index[1]


def node_count(value: Any, where: str) -> int:
    """``num_nodes`` as the user gave it."""
    try:
        count = operator.index(value)
    except (TypeError, ValueError, RuntimeError) as error:
        given = " ".join(repr(value).split())[:40]
        raise RawlsError(f"{where}: num_nodes must be one integer, not {given}") from error
    if count < 0:
        raise RawlsError(f"{where}: num_nodes is {count}, a number of nodes is not negative")
    return check_count(count, where)


def check_count(nodes: int, where: str) -> int:
    """Refuse a number of nodes whose every vector would fill the memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        memory = 2**40
    if nodes * _BYTES_A_NODE > memory:
        raise RawlsError(
            f"{where} has {nodes:,} nodes by its own account, too many for this machine's memory: "
            "number them from 0 without gaps, or write an edge list, whose ids may be any numbers"
        )
    return nodes


def highest(found: Found) -> int:
    """The largest id that an edge names, -1 without edges."""
    if len(found.source) == 0:
        return -1
    return max(int(found.source.max()), int(found.target.max()))


def _edges_of(adjacency: Tensor, where: str) -> tuple[Tensor, Tensor]:
    from torch_geometric.utils import to_edge_index

    if adjacency.dim() != 2 or adjacency.size(0) != adjacency.size(1):
        raise RawlsError(
            f"{where}: adj_t has the shape {tuple(adjacency.shape)}, it must be square, "
            "a row and a column for each node"
        )
    if adjacency.layout == torch.strided:
        adjacency = adjacency.to_sparse(layout=torch.sparse_coo)
    edge_index, weight = to_edge_index(adjacency)
    return edge_index, weight


def _notes(notes: Any, where: str) -> list[str]:
    if notes is None:
        return []
    if isinstance(notes, str):
        return [notes]
    if not isinstance(notes, list | tuple) or not all(isinstance(note, str) for note in notes):
        raise RawlsError(
            f"{where}: its attribute 'notes' must be a list of sentences: rename it if it is yours"
        )
    return list(notes)


def _numpy(value: Any) -> Array:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value
    try:
        return np.asarray(value)
    except ValueError as error:
        raise RawlsError("the graph holds lists of different lengths: give tensors") from error
