"""What shards say of every node, a few bytes each: class, split and degree, without the edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from .._core.errors import RawlsError
from .shards import Shards
from .splits import MASKS, SPLIT_WORDS, require_evaluated

Ints = NDArray[np.int64]


def shard_node_ids(shards: Shards) -> Any:
    """Read the ids of all nodes.

    Args:
        shards: The shards.

    Returns:
        An array of whole numbers, a list of texts, or None if the nodes are numbered from 0.
    """
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
    def of(cls, shards: Shards) -> ShardNodes:
        """Read what the shards say of every node.

        Args:
            shards: The shards, which must have labels.

        Returns:
            The nodes.

        Raises:
            RawlsError: If there are no labels, or a file is damaged.
        """
        shards.require_labels()
        y = np.full(shards.num_nodes, -1, dtype=np.int64)
        split = np.zeros(shards.num_nodes, dtype=np.uint8)
        degree = np.empty(shards.num_nodes, dtype=np.int64)
        for number in range(len(shards)):
            part = shards.open(number)
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
        """Return the nodes of one part of the split, of which there must be some.

        Args:
            which: ``"train"``, ``"val"`` or ``"test"``.

        Returns:
            Their numbers, in rising order.

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
        graph = Data(
            edge_index=torch.empty(2, 0, dtype=torch.long),
            num_nodes=self.shards.num_nodes,
            y=torch.from_numpy(self.y),
            name=self.shards.name,
        )
        ids = shard_node_ids(self.shards)
        if ids is not None:
            graph.node_ids = ids
        if self.shards.class_names is not None:
            graph.class_names = self.shards.class_names
        graph.degree, graph.num_arcs = torch.from_numpy(self.degree), self.shards.num_arcs
        if self.split.any():
            for number, name in enumerate(MASKS, start=1):
                graph[name] = torch.from_numpy(self.split == number)
        return graph
