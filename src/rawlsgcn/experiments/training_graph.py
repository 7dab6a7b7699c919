"""What a saved model keeps of the graph that it was trained on: its nodes' order and its split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..graphs.graph_statistics import edge_digest
from ..graphs.splits import MASKS, SPLIT_WORDS


@dataclass(frozen=True)
class TrainingGraph:
    """The graph of a model, so that it is recognized when it is read again.

    The nodes may then be in another order: which file comes first decides it.

    Attributes:
        edges: A hash of the number of nodes and of the edges.
        rank: The place of each node among the sorted node ids, (nodes,); None if they are sorted.
        masks: The training, validation and test nodes.
    """

    edges: str
    rank: Tensor | None
    masks: dict[str, Tensor]

    @classmethod
    def of(cls, graph: Data) -> TrainingGraph:
        """Describe a validated graph with its masks."""
        masks = {key: graph[key].cpu() for key in MASKS if graph.get(key) is not None}
        digest = edge_digest(graph.edge_index, int(graph.num_nodes))
        return cls(digest, _rank(graph.get("node_ids")), masks)

    @classmethod
    def from_tensors(cls, edges: str, tensors: Mapping[str, Tensor]) -> TrainingGraph:
        """Restore it from what :meth:`tensors` returned."""
        masks = {key: tensors[key] for key in MASKS if key in tensors}
        return cls(edges, tensors.get("rank"), masks)

    def tensors(self) -> dict[str, Tensor]:
        """Return what has to be saved besides the hash, by name."""
        return self.masks if self.rank is None else {"rank": self.rank, **self.masks}

    def places(self, graph: Data) -> Tensor | None:
        """Return the number of each node in the training graph; None for another graph."""
        nodes = int(graph.num_nodes)
        rank, own = _rank(graph.get("node_ids")), self.rank
        places = torch.arange(nodes)
        if own is not None:
            if own.shape != (nodes,) or not torch.equal(own.sort().values, places):
                return None
            places = own.argsort()
        if rank is not None:
            places = places[rank]
        for each in (places, torch.arange(nodes)):  # ids may be missing in one of the files
            if edge_digest(_sorted(each[graph.edge_index], None)[0], nodes) == self.edges:
                return each
        return None

    def split(self, graph: Data) -> list[str] | None:
        """Return "train", "val", "test" or "" for each node; None for another graph."""
        places = self.places(graph) if len(self.masks) == len(MASKS) else None
        if places is None or any(mask.shape != places.shape for mask in self.masks.values()):
            return None
        return split_words([self.masks[key][places] for key in MASKS])


def split_words(masks: Sequence[Tensor]) -> list[str]:
    """Return the name of the part that each node is in: "train", "val", "test" or ""."""
    words = np.full(len(masks[0]), "", dtype=object)
    for word, mask in zip(SPLIT_WORDS, masks, strict=True):
        words[mask.cpu().numpy().astype(bool)] = word
    return [str(word) for word in words]


def in_order(graph: Data, places: Tensor) -> Data:
    """Return the edges of a graph with its nodes renumbered: node i becomes ``places[i]``."""
    edge_index, edge_weight = _sorted(places[graph.edge_index], graph.get("edge_weight"))
    ordered = Data(edge_index=edge_index, num_nodes=int(graph.num_nodes))
    if edge_weight is not None:
        ordered.edge_weight = edge_weight
    return ordered


def _rank(node_ids: Any) -> Tensor | None:
    """The place of each id among all of them in order; None where that is 0 to n - 1."""
    if node_ids is None:
        return None
    rank = np.argsort(np.argsort(np.asarray(node_ids), kind="stable"), kind="stable")
    return None if bool((rank[1:] > rank[:-1]).all()) else torch.from_numpy(rank)


def _sorted(edge_index: Tensor, edge_weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    order = np.lexsort((edge_index[1].numpy(), edge_index[0].numpy()))
    by = torch.from_numpy(order)
    return edge_index[:, by], None if edge_weight is None else edge_weight[by]
