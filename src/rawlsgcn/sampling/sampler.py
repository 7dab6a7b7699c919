"""A neighbour sampler for torch_geometric's loaders that needs no compiled extension."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import typing as pyg
from torch_geometric.data import Data
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler import NeighborSampler as PygNeighborSampler

from .._core.argument_checks import require_nodes
from .._core.errors import RawlsError
from .adjacency import Adjacency
from .neighborhoods import Neighborhoods, parse_num_neighbors


class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Neighbours without replacement, min(k, d) of each node, for ``NodeLoader(node_sampler=…)``.

    What comes out is what ``NeighborLoader`` gives: the nodes met, seeds first, and the arcs
    drawn, the row of each node once. pyg-lib does the work where it is installed.

    Random numbers come from torch's generator: ``torch.manual_seed`` makes a run repeatable, and
    every worker of a loader has a seed of its own.

    Args:
        data: A homogeneous torch_geometric ``Data`` with an ``edge_index``.
        num_neighbors: How many neighbours to draw in each hop, outermost layer first; −1 for all.
    """

    def __init__(self, data: Data, num_neighbors: Any) -> None:
        self.num_neighbors = parse_num_neighbors(num_neighbors)
        edge_index = edges_of(data, "the sampler")
        self._compiled = None
        self._order: Tensor | None
        if pyg.WITH_PYG_LIB:
            self._compiled = PygNeighborSampler(data, list(self.num_neighbors))
            self._order = self._compiled.edge_permutation
            return
        adjacency = Adjacency.of(edge_index, None, int(data.num_nodes))
        self._order = adjacency.order
        self._neighborhoods = Neighborhoods(adjacency)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        if self._compiled is not None:
            return self._compiled.sample_from_nodes(index, **kwargs)
        require_nodes(index.node, self._neighborhoods.adjacency.num_nodes, "the sampler")
        key = int(torch.randint(2**63 - 1, ()))
        sample = self._neighborhoods.sample(index.node.numpy(), self.num_neighbors, key)
        return SamplerOutput(
            node=torch.from_numpy(sample.nodes),
            row=_joined([hop.source for hop in sample.hops]),
            col=_joined([hop.target for hop in sample.hops]),
            edge=_joined([hop.arc for hop in sample.hops]),
            num_sampled_nodes=sample.new,
            num_sampled_edges=[len(hop.arc) for hop in sample.hops],
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> SamplerOutput:
        raise RawlsError("this sampler draws around nodes, not around edges: use a NodeLoader")

    @property
    def edge_permutation(self) -> Tensor | None:
        return self._order


def edges_of(data: Any, what: str) -> Any:
    """The edge index of a torch_geometric ``Data``."""
    if not isinstance(data, Data):
        raise RawlsError(f"{what} needs a torch_geometric Data, not {type(data).__name__}")
    edge_index = data.get("edge_index")
    if edge_index is None:
        raise RawlsError(f"{what} needs a graph with an edge_index; this Data has none")
    return edge_index


def _joined(parts: list[Any]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int64, copy=False))
