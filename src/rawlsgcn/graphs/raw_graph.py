"""A graph as it was read, before validation: what every reader returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._core.argument_checks import whole_number
from .._core.errors import RawlsError
from .._core.memory import physical_memory
from .notes import GraphFacts
from .readers.arrays import checked_matrix, plausible

Array = NDArray[Any]
_BYTES_A_NODE = 64
"""The least that a node costs: its place in a CSR matrix and in a few vectors over the nodes."""


@dataclass
class RawGraph:
    """The pieces of a graph and, for the error messages, where each came from.

    ``x`` may be a numpy, scipy.sparse or torch matrix; the other arrays are numpy's.
    ``num_nodes`` is set where the source itself says it (the shape of an adjacency matrix).
    ``node_ids`` are of :func:`clean_ids`. ``label_place`` names the place of a node's label in a
    file that has lines. ``undirected`` means that the source defines an undirected graph, however
    it stores the edges: to symmetrize them is to read them, and is no fact to report.
    ``unused_attributes`` are the names of what else is known of the nodes.
    """

    name: str
    source: Array
    target: Array
    weight: Array | None = None
    num_nodes: int | None = None
    x: Any = None
    y: Array | None = None
    masks: dict[str, Array] = field(default_factory=dict)
    node_ids: Array | None = None
    synthetic: bool = False
    undirected: bool = False
    class_names: list[str] | None = None
    facts: GraphFacts = field(default_factory=GraphFacts)
    graph_from: str = "the graph"
    features_from: str = ""
    labels_from: str = ""
    label_place: Callable[[int], str] | None = None
    unused_attributes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.features_from = self.features_from or self.graph_from
        self.labels_from = self.labels_from or self.graph_from

    def named(self, node: int) -> str:
        """Name a node for an error message: by the user's id, or by its row."""
        if self.node_ids is None:
            return f"node {node} (counted from 0)"
        return f"node {self.node_ids[node]}"

    def named_label(self, node: int) -> str:
        """Name a node and where its label stands, for an error message."""
        place = self.labels_from if self.label_place is None else self.label_place(node)
        return f"{place}: {self.named(node)}"

    def highest_node(self) -> int:
        """The largest id that an edge names, -1 without edges."""
        return max(
            (int(side.max()) for side in (self.source, self.target) if len(side)), default=-1
        )

    def checked_count(self, nodes: int) -> int:
        """Return a number of nodes, or raise an error if it cannot be meant."""
        x, stored = self.x, 0  # arcs, rows or entries of features, labels, ids
        if isinstance(x, Tensor):
            stored = len(x) if x.layout == torch.strided and x.dim() else x._nnz()
        elif x is not None:
            stored = x.nnz if sp.issparse(x) else len(np.atleast_1d(x))
        parts = (self.source, self.y, self.node_ids)
        stored += sum(np.size(part) for part in parts if part is not None)
        return check_count(nodes, self.graph_from, stored)


def endpoints(edge_index: Any, where: str) -> tuple[Array, Array]:
    """The two rows of an edge index, also when it is given as one edge a row."""
    edges = as_numpy(edge_index, "edge_index", where)
    if edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2:
        edges = edges.T
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise RawlsError(
            f"{where}: edge_index has the shape {tuple(edges.shape)}, it must be (2, edges)"
        )
    if edges.size == 0:
        edges = edges.astype(np.int64)  # an empty list is one of floats
    if edges.dtype.kind not in "iu":
        raise RawlsError(f"{where}: edge_index must hold integers, not {edges.dtype}")
    return edges[0], edges[1]


def node_count(value: Any, where: str) -> int:
    """``num_nodes`` as the user gave it."""
    value = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    return check_count(whole_number(value, f"{where}: num_nodes"), where)


def check_count(nodes: int, where: str, stored: int | None = None) -> int:
    """Return a number of nodes, or raise an error if it cannot be meant.

    ``stored`` is how much is stored about the nodes: one number alone may be anything.
    """
    too_empty = stored is not None and not plausible(nodes, stored)
    if too_empty or nodes * _BYTES_A_NODE > physical_memory():
        raise RawlsError(
            f"{where} says that it has {nodes:,} nodes, too many for this machine's memory or for "
            "what is stored about them: number them from 0 without gaps, or write an edge list, "
            "whose ids may be any numbers"
        )
    return nodes


def clean_ids(ids: Any, where: str) -> Array:
    """The ids of the nodes as whole numbers or (as objects) texts, each once."""
    # Texts stay objects: numpy's own would all be as long as the longest of them.
    listed = isinstance(ids, list | tuple) and any(isinstance(each, str) for each in ids)
    given = np.array(ids, dtype=object) if listed else as_numpy(ids, "node_ids", where)
    if given.dtype.kind == "S":
        given = np.char.decode(given, "utf-8", "replace")
    if given.dtype == np.uint64 and given.size and int(given.max()) < 2**63:
        given = given.astype(np.int64)
    texts = given.dtype.kind == "O" and all(isinstance(each, str | int) for each in given.flat)
    whole = given.dtype.kind in "iu" and given.dtype != np.uint64
    if given.ndim != 1 or not (whole or texts or given.dtype.kind == "U"):
        raise RawlsError(
            f"{where}: node_ids must be a list of whole numbers or texts, one for each node, not "
            f"{given.dtype} of the shape {given.shape}"
        )
    known = given.astype(np.int64) if whole else np.empty(len(given), object)
    if not whole:
        known[:] = [str(each).strip() for each in given]
    again = pd.Series(known).duplicated().to_numpy()
    if again.any():
        second = int(again.argmax())
        first = int(np.flatnonzero(known == known[second])[0])
        raise RawlsError(
            f"{where}: the node id '{known[second]}' appears twice, as node {first} and as node "
            f"{second} (counted from 0): every node needs an id of its own"
        )
    return known


def feature_matrix(x: Any, where: str) -> Any:
    """Features as a sound matrix of torch, scipy or numpy."""
    if x is None:
        return None
    if isinstance(x, Tensor):
        return checked_tensor(x, "x", where)
    if sp.issparse(x):
        return checked_matrix(x, f"{where}: x")
    return as_numpy(x, "x", where)


def checked_tensor(value: Tensor, what: str, where: str) -> Tensor:
    """A tensor of plain numbers that are there; the indices of a sparse one are checked."""
    kinds = {"complex": value.is_complex(), "quantized": value.is_quantized}
    kinds |= {"meta": value.is_meta, "nested": value.is_nested}
    for kind in (kind for kind, found in kinds.items() if found):
        raise RawlsError(f"{where}: {what} is a {kind} tensor: give one of real numbers")
    shape: Any = value.shape
    try:
        if value.layout == torch.strided:
            return value
        if value.layout == torch.sparse_coo:
            parts, whole = (value._indices(), value._values()), value.is_coalesced()
            return torch.sparse_coo_tensor(*parts, shape, is_coalesced=whole, check_invariants=True)
        by_row = value.layout in (torch.sparse_csr, torch.sparse_bsr)
        start = value.crow_indices() if by_row else value.ccol_indices()
        index = value.col_indices() if by_row else value.row_indices()
        return torch.sparse_compressed_tensor(
            start, index, value.values(), shape, layout=value.layout, check_invariants=True
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise RawlsError(f"{where}: {what} is a damaged sparse tensor: {reason}") from error


def as_numpy(value: Any, what: str, where: str) -> Array:
    """A dense array or tensor as an array of numpy."""
    if isinstance(value, Tensor):
        value = checked_tensor(value.detach().cpu(), what, where)
        if value.layout != torch.strided:
            raise RawlsError(f"{where}: {what} is a sparse tensor: give a dense one")
        value = value.float() if value.dtype == torch.bfloat16 else value.resolve_neg()
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        cure = "holds lists of different lengths: give a tensor"
        raise RawlsError(f"{where}: {what} {cure}") from error
