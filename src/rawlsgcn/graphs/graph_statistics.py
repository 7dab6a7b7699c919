"""The figures that describe a graph, as in the paper's table of datasets, and its fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from .catalog import MASKS
from .node_features import prefer_sparse


@dataclass(frozen=True)
class Statistics:
    """The figures that ``rawlsgcn datasets`` prints for a graph.

    ``edges`` counts arcs, both directions of an undirected edge; for a graph stored with directed
    arcs and symmetrized here (Chameleon) it counts the stored arcs, as the paper does, and
    ``symmetric_edges`` what the methods work on. Degrees are numbers of neighbors in A.
    """

    nodes: int
    edges: int
    symmetric_edges: int
    features: int
    classes: int
    median_degree: int
    max_degree: int
    isolated_nodes: int
    distinct_degrees: int

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, for JSON."""
        return asdict(self)


def statistics(graph: Data) -> Statistics:
    """Compute the figures that describe a graph.

    Args:
        graph: A graph from ``load``, ``read``, ``synthetic`` or ``check``.

    Returns:
        Its sizes and degrees.
    """
    nodes, arcs = int(graph.num_nodes), int(graph.edge_index.size(1))
    degree = torch.bincount(graph.edge_index[0], minlength=nodes)
    x, y = graph.get("x"), graph.get("y")
    return Statistics(
        nodes=nodes,
        edges=int(graph.get("stored_edges") or arcs),
        symmetric_edges=arcs,
        features=0 if x is None else int(x.size(1)),
        classes=0 if y is None else int(y.max()) + 1,
        median_degree=int(degree.median()),
        max_degree=int(degree.max()),
        isolated_nodes=int((degree == 0).sum()),
        distinct_degrees=len(torch.unique(degree)),
    )


def fingerprint(graph: Data) -> str:
    """Return the sizes and a hash of each part, so that two texts also say what is different.

    Dense and sparse features of the same values have the same hash.
    """
    parts = {
        "edges": [graph.edge_index, graph.get("edge_weight")],
        "features": _stored(graph.get("x")),
        "labels": [graph.get("y")],
        "split": [graph.get(name) for name in MASKS],
    }
    hashes = {name: _hash(tensors) for name, tensors in parts.items()}
    return fingerprint_text(int(graph.num_nodes), graph.edge_index.shape[1], hashes)


def fingerprint_text(nodes: int, arcs: int, hashes: Mapping[str, str]) -> str:
    """Return the fingerprint of the hashes of a graph's edges, features, labels and split."""
    listed = ", ".join(f"{name} {each}" for name, each in hashes.items())
    return f"{nodes} nodes, {arcs} arcs, {listed}"


def edge_digest(edge_index: Tensor, num_nodes: int) -> str:
    """Return a hash of the number of nodes and of validated edges, as 12 hexadecimal digits."""
    return _hash([torch.tensor(num_nodes), edge_index])


def _stored(x: Tensor | None) -> list[Tensor | None]:
    x = None if x is None else prefer_sparse(x)
    if x is None or x.layout != torch.sparse_csr:
        return [x]
    return [torch.tensor(x.shape), x.crow_indices(), x.col_indices(), x.values()]


class TensorHash:
    """The hash of several tensors, whose values may come in blocks."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=6)

    def add(
        self, kind: torch.dtype, shape: tuple[int, ...], blocks: Iterable[NDArray[Any]]
    ) -> None:
        """Add a tensor by its type, its shape, and its values in consecutive blocks."""
        self._digest.update(f"{kind} {shape}".encode())
        for block in blocks:
            self._digest.update(np.ascontiguousarray(block).data)

    def add_missing(self) -> None:
        """Add a tensor that is not there."""
        self._digest.update(b"none")

    def hexdigest(self) -> str:
        """Return the hash as 12 hexadecimal digits."""
        return self._digest.hexdigest()


def _hash(tensors: list[Tensor | None]) -> str:
    digest = TensorHash()
    for tensor in tensors:
        if tensor is None:
            digest.add_missing()
        else:
            values = tensor.detach().cpu().contiguous().numpy()
            digest.add(tensor.dtype, tuple(tensor.shape), [values])
    return digest.hexdigest()
