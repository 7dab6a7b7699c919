"""A neighbor sampler for torch_geometric's loaders that needs no compiled extension."""

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
from .neighbor_drawing import Neighborhoods, parse_num_neighbors


class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Sample min(k, d) neighbors of each node without replacement, for ``NodeLoader``.

    The output is that of ``NeighborLoader``: the sampled nodes, seeds first, and the sampled arcs,
    the row of each node once. pyg-lib is used where it is installed.

    Random numbers come from torch's generator: ``torch.manual_seed`` makes a run repeatable, and
    every worker of a loader has its own seed.

    Args:
        data: A homogeneous torch_geometric ``Data`` with an ``edge_index``.
        num_neighbors: The number of neighbors to sample in each hop, outermost layer first; −1 for
            all.

    Raises:
        RawlsError: If ``data`` has no valid ``edge_index``, or ``num_neighbors`` is invalid.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.loader import NodeLoader
        >>> from rawlsgcn.sampling import NeighborSampler
        >>> star = Data(edge_index=torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]), num_nodes=5)
        >>> loader = NodeLoader(star, NeighborSampler(star, [2]), torch.tensor([0]))
        >>> next(iter(loader)).num_edges
        2
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
        """Sample a neighborhood of some seed nodes; called by the loader.

        Args:
            index: The seed nodes.
            **kwargs: Passed to pyg-lib's sampler.

        Returns:
            The sampled nodes and arcs.

        Raises:
            RawlsError: If a seed is not a node of the graph.
        """
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
        """Raise an error: this sampler is for nodes.

        Args:
            index: The seed edges.
            neg_sampling: How to sample negative edges.

        Raises:
            RawlsError: Always.
        """
        raise RawlsError("this sampler samples around nodes, not around edges: use a NodeLoader")

    @property
    def edge_permutation(self) -> Tensor | None:
        """The position of each sorted arc in the edge index; None if it is the same."""
        return self._order


def edges_of(data: Any, what: str) -> Any:
    """Return the edge index of a torch_geometric ``Data``; ``what`` names the caller."""
    if not isinstance(data, Data):
        raise RawlsError(f"{what} needs a torch_geometric Data, not {type(data).__name__}")
    edge_index = data.get("edge_index")
    if edge_index is None:
        raise RawlsError(f"{what} needs a graph with an edge_index; this Data has none")
    return edge_index


def _joined(parts: list[Any]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int64, copy=False))
