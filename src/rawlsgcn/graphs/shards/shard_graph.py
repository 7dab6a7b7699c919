"""The graph of shards in memory: the whole of it, or its nodes alone, a few bytes each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from ..._core.errors import RawlsError
from ..node_features import compact
from ..splits import MASKS, SPLIT_WORDS, require_evaluated
from .shards import Shard, Shards

Ints = NDArray[np.int64]


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
    def of(cls, shards: Shards, parts: list[Shard] | None = None) -> ShardNodes:
        """Read what shards with labels, or all of them that are open already, say of every node.

        Raises:
            RawlsError: If there are no labels, or a file is damaged.
        """
        shards.require_labels()
        parts = parts or [shards.open(number) for number in range(len(shards))]
        y, split = _joined(parts, "y"), _joined(parts, "split")
        assert y is not None  # every shard has labels if the manifest says so
        split = np.zeros(shards.num_nodes) if split is None else split
        degree = np.concatenate([np.diff(part.row_start) for part in parts])
        return cls(shards, y, split.astype(np.uint8), degree)

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
        parts = [self.shards.open(number) for number in range(len(self.shards))]
        graph = _graph_of_nodes(self.shards, parts, self.split)
        graph.edge_index = torch.empty(2, 0, dtype=torch.long)
        graph.y, graph.degree = torch.from_numpy(self.y), torch.from_numpy(self.degree)
        graph.num_arcs = self.shards.num_arcs
        return graph


def graph_of_shards(shards: Shards) -> Data:
    """Read all shards; the inverse of :func:`rawlsgcn.graphs.shards.write_shards`.

    The graph has those of features, labels, masks, weights, ids and names that the shards have.

    Raises:
        RawlsError: If a file is missing or damaged.
    """
    parts = shards.open_all()
    graph = _graph_of_nodes(shards, parts, _joined(parts, "split"))
    counts = np.concatenate([np.diff(part.row_start) for part in parts])
    row = np.repeat(np.arange(shards.num_nodes), counts)
    column = np.concatenate([part.column for part in parts]).astype(np.int64, copy=False)
    graph.edge_index = torch.from_numpy(np.stack([row, column]))
    for name, key in (("weight", "edge_weight"), ("x", "x"), ("y", "y")):
        array = _joined(parts, name)
        if array is not None:
            graph[key] = compact(array) if name == "x" else torch.from_numpy(array)
    return graph


def _graph_of_nodes(shards: Shards, parts: list[Shard], split: NDArray[Any] | None) -> Data:
    """Make a graph of the name, the ids, the names of classes and the masks of shards alone."""
    graph = Data(num_nodes=shards.num_nodes, name=shards.name)
    ids = _joined(parts, "node_id")
    if ids is not None:
        graph.node_ids = ids
    elif parts[0].id_start is not None:
        graph.node_ids = [each for part in parts for each in part.node_ids(part.first, part.last)]
    if shards.class_names is not None:
        graph.class_names = shards.class_names
    if split is not None and split.any():
        for number, name in enumerate(MASKS, start=1):
            graph[name] = torch.from_numpy(split == number)
    return graph


def _joined(parts: list[Shard], name: str) -> NDArray[Any] | None:
    """An array of all shards, which all of them have or none."""
    pieces = [getattr(part, name) for part in parts]
    return None if pieces[0] is None else np.concatenate(pieces)
