"""A graph as it was found, before any check: what every reader hands to the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass
class Found:
    """The pieces of a graph and, for the error messages, where each came from.

    ``x`` may be a numpy, scipy.sparse or torch matrix; the other arrays are numpy's.
    ``num_nodes`` is set where the source itself says it (the shape of an adjacency matrix).
    """

    name: str
    source: NDArray[Any]
    target: NDArray[Any]
    weight: NDArray[Any] | None = None
    num_nodes: int | None = None
    x: Any = None
    y: NDArray[Any] | None = None
    masks: dict[str, NDArray[Any]] = field(default_factory=dict)
    node_ids: NDArray[Any] | Sequence[Any] | None = None
    synthetic: bool = False
    notes: list[str] = field(default_factory=list)
    graph_from: str = "the graph"
    features_from: str = "the graph"
    labels_from: str = "the graph"

    def who(self, node: int) -> str:
        """How the user knows a node: by his own id, or by its row."""
        if self.node_ids is None:
            return f"node {node} (counted from 0)"
        return f"node {self.node_ids[node]}"
