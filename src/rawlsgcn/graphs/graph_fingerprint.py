"""The fingerprint of a graph: a short text by which a saved model or file knows its graph again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from .catalog import MASKS
from .node_features import prefer_sparse


class BlockTensor(NamedTuple):
    """A tensor whose values come in consecutive blocks."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    blocks: Iterable[NDArray[Any]]


Hashed = Iterable[Tensor | BlockTensor | None]


def fingerprint(graph: Data) -> str:
    """Return the sizes and a hash of each part, so that two texts also say what is different.

    Dense and sparse features of the same values have the same hash.
    """
    parts = (
        [graph.edge_index, graph.get("edge_weight")],
        _stored(graph.get("x")),
        [graph.get("y")],
        [graph.get(name) for name in MASKS],
    )
    hashes = map(tensor_hash, parts)
    return fingerprint_text(int(graph.num_nodes), graph.edge_index.shape[1], hashes)


def _stored(x: Tensor | None) -> Hashed:
    x = None if x is None else prefer_sparse(x)
    if x is None or x.layout != torch.sparse_csr:
        return [x]
    return [torch.tensor(x.shape), x.crow_indices(), x.col_indices(), x.values()]


def fingerprint_text(nodes: int, arcs: int, hashes: Iterable[str]) -> str:
    """Return the fingerprint of the hashes of a graph's edges, features, labels and split."""
    parts = zip(("edges", "features", "labels", "split"), hashes, strict=True)
    return f"{nodes} nodes, {arcs} arcs, {', '.join(map(' '.join, parts))}"


def edge_digest(edge_index: Tensor, num_nodes: int) -> str:
    """Return a hash of the number of nodes and of validated edges, as 12 hexadecimal digits."""
    return tensor_hash([torch.tensor(num_nodes), edge_index])


def tensor_hash(tensors: Hashed) -> str:
    """Return the hash of several tensors, of which some may be missing."""
    digest = hashlib.blake2b(digest_size=6)
    for each in tensors:
        if each is None:
            digest.update(b"none")
            continue
        if isinstance(each, Tensor):
            values = each.detach().cpu().contiguous().numpy()
            each = BlockTensor(each.dtype, tuple(each.shape), [values])
        digest.update(f"{each.dtype} {each.shape}".encode())
        for block in each.blocks:
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()
