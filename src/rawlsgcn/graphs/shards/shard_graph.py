"""The graph of shards in memory: the whole of it, or its nodes alone, a few bytes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ..._core.errors import RawlsError
from ..node_features import compact
from ..splits import MASKS, SPLIT_WORDS, require_evaluated
from .shards import Shard, Shards

Ints = NDArray[np.int64]


def shard_node_ids(shards: Shards) -> Any:
    """Read the ids of all nodes: whole numbers, texts, or None if they are numbered from 0."""
    parts = [shards.open(number) for number in range(len(shards))]
    if all(part.node_id is not None for part in parts):
        return np.concatenate([part.node_id for part in parts])
    if all(part.id_start is not None for part in parts):
        return [each for part in parts for each in part.node_ids(part.first, part.last)]
    return None


@dataclass(frozen=True, eq=False)
class ShardNodes:
    """The nodes of a graph in shards.

    Attributes:
        shards: The shards.
        y: The class of every node, (nodes,); -1 for a node without one.
        split: 1 for training, 2 for validation, 3 for test nodes, else 0, (nodes,).
        degree: The number of neighbors of every node, (nodes,).
    """

    shards: Shards
    y: Ints
    split: NDArray[Any]
    degree: Ints

    @classmethod
    def of(cls, shards: Shards, parts: Sequence[Shard] = ()) -> ShardNodes:
        """Read what shards with labels, or all of them that are open already, say of every node.

        Raises:
            RawlsError: If there are no labels, or a file is damaged.
        """
        shards.require_labels()
        y = np.full(shards.num_nodes, -1, dtype=np.int64)
        split = np.zeros(shards.num_nodes, dtype=np.uint8)
        degree = np.empty(shards.num_nodes, dtype=np.int64)
        for part in parts or map(shards.open, range(len(shards))):
            rows = slice(part.first, part.last)
            if part.y is not None:
                y[rows] = part.y
            degree[rows] = np.diff(part.row_start)
            if part.split is not None:
                split[rows] = part.split
        return cls(shards, y, split, degree)

    def evaluated_on(self, which: str) -> ShardNodes:
        """Return the nodes with those to evaluate as the test nodes; see ``--evaluate``.

        Args:
            which: ``"test"``, or ``"all"`` for every labeled node outside training and validation.

        Returns:
            The nodes.

        Raises:
            RawlsError: If it is another word.
        """
        require_evaluated(which)
        if which == "test":
            return self
        further = (self.split == 0) & (self.y >= 0)
        return replace(self, split=np.where(further, len(MASKS), self.split).astype(np.uint8))

    def nodes(self, which: str) -> Ints:
        """Return the numbers of the nodes that are ``"train"``, ``"val"`` or ``"test"``, rising.

        Raises:
            RawlsError: If there are none.
        """
        found = np.flatnonzero(self.split == 1 + SPLIT_WORDS.index(which))
        if not len(found):
            mask = MASKS[SPLIT_WORDS.index(which)]
            raise RawlsError(f"the shards in {self.shards.folder} have no node in their {mask}")
        return found

    @cached_property
    def graph(self) -> Data:
        """A graph without edges and features, whose attribute ``degree`` has the degrees."""
        graph = graph_of_nodes(self.shards, torch.from_numpy(self.split))
        graph.edge_index = torch.empty(2, 0, dtype=torch.long)
        graph.y, graph.degree = torch.from_numpy(self.y), torch.from_numpy(self.degree)
        graph.num_arcs = self.shards.num_arcs
        return graph


def graph_of_nodes(shards: Shards, split: Tensor | None) -> Data:
    """Make a graph of the name, the ids, the names of classes and the masks of shards alone."""
    graph = Data(num_nodes=shards.num_nodes, name=shards.name)
    ids = shard_node_ids(shards)
    if ids is not None:
        graph.node_ids = ids
    if shards.class_names is not None:
        graph.class_names = shards.class_names
    if split is not None and bool(split.any()):
        for number, name in enumerate(MASKS, start=1):
            graph[name] = split == number
    return graph


def graph_of_shards(shards: Shards) -> Data:
    """Read all shards; the inverse of :func:`rawlsgcn.graphs.shards.write_shards`.

    The graph has those of features, labels, masks, weights, ids and names that the shards have.

    Raises:
        RawlsError: If a file is missing or damaged.
    """
    parts = shards.open_all()
    arrays: dict[str, Tensor] = {}
    for name in ("weight", "x", "y", "split"):
        pieces = [piece for part in parts if (piece := getattr(part, name)) is not None]
        if len(pieces) == len(parts):
            arrays[name] = torch.from_numpy(np.concatenate(pieces))
    counts = np.concatenate([np.diff(part.row_start) for part in parts])
    row = np.repeat(np.arange(shards.num_nodes), counts)
    column = np.concatenate([part.column for part in parts]).astype(np.int64, copy=False)
    graph = graph_of_nodes(shards, arrays.get("split"))
    graph.edge_index = torch.from_numpy(np.stack([row, column]))
    if "weight" in arrays:
        graph.edge_weight = arrays["weight"]
    if "x" in arrays:
        graph.x = compact(arrays["x"])
    if "y" in arrays:
        graph.y = arrays["y"]
    return graph
