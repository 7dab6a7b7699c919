"""A short text that tells graphs apart: their edges, features, labels and split."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .catalog import MASKS
from .feature_storage import prefer_sparse

if TYPE_CHECKING:
    from torch_geometric.data import Data


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
    hashes = ", ".join(f"{name} {_hash(tensors)}" for name, tensors in parts.items())
    return f"{graph.num_nodes} nodes, {graph.edge_index.shape[1]} arcs, {hashes}"


def edge_digest(graph: Data) -> str:
    """Return a hash of the number of nodes and of the edges."""
    return f"{graph.num_nodes}-{_hash([graph.edge_index])}"


def _stored(x: Tensor | None) -> list[Tensor | None]:
    x = None if x is None else prefer_sparse(x)
    if x is None or x.layout != torch.sparse_csr:
        return [x]
    return [torch.tensor(x.shape), x.crow_indices(), x.col_indices(), x.values()]


def _hash(tensors: list[Tensor | None]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for tensor in tensors:
        if tensor is None:
            digest.update(b"none")
            continue
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
