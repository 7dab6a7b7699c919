"""The lifted graph: nodes with few neighbors get edges to the nodes with the nearest features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._core.argument_checks import require_edges, require_nodes, whole_number
from ..._core.errors import RawlsError
from ..._core.text import plural
from ..._core.threads import fork_safe_threads
from ..node_features import first_not_finite
from .nearest_nodes import MAX_EXACT_NODES, nearest_nodes

_SEARCHES = ("auto", "exact", "approximate")


@dataclass(frozen=True)
class LiftedGraph:
    """A graph with edges added for the nodes that had few neighbors.

    Args:
        edge_index: Edges (2, E'), both directions, sorted by row and column.
        edge_weight: Weights (E',), 1 for the added edges; None for a graph without weights.
        added: Number of undirected edges that were added.
        lifted: Number of nodes that had too few neighbors.
        search: 'exact' or 'approximate', how the nearest nodes were searched for.
    """

    edge_index: Tensor
    edge_weight: Tensor | None
    added: int
    lifted: int
    search: str

    @property
    def note(self) -> str:
        """One sentence: how many nodes were given how many edges, by which search."""
        if not self.lifted:
            return "no node has few neighbors: no edge was added."
        search = "an exact search" if self.search == "exact" else "an approximate search (faiss)"
        return (
            f"{plural(self.lifted, 'node')} with few neighbors got {plural(self.added, 'edge')} to "
            f"the nodes with the nearest features, found by {search}."
        )


@fork_safe_threads()
def lift_low_degrees(
    edge_index: Tensor,
    features: Tensor,
    *,
    edge_weight: Tensor | None = None,
    min_degree: int = 10,
    search: str = "auto",
) -> LiftedGraph:
    """Give nodes with few neighbors edges to the nodes with the nearest features.

    Every node with fewer than ``min_degree`` neighbors gets edges to its nearest other nodes by
    cosine, as many as it lacks, nearest first, of equally near ones the smaller node number first,
    of 64 or more such ones some that are drawn for it (always the same). It gets none to its
    neighbors, nor where the cosine is zero or less. The edges are made symmetric, so a node may get
    more of them than it lacks. Cosines are compared in double precision, to ten decimals.

    Args:
        edge_index: Edges (2, E), both directions, without self-loops.
        features: Matrix (n, d) whose rows are compared, dense or sparse, for instance
            tf-idf of the node features.
        edge_weight: Weights (E,) of the edges, which are kept; added edges get 1.
        min_degree: Number of neighbors that every node should have.
        search: 'exact', 'approximate' (needs ``pip install rawlsgcn[ann]``) or 'auto': exact up to
            100,000 nodes.

    Returns:
        The lifted graph, on the device of ``edge_index``. Same input, same edges.

    Raises:
        RawlsError: If an argument is invalid, a feature is not finite, or the approximate search
            is not installed.

    Example:
        >>> import torch
        >>> from rawlsgcn.graphs import lift_low_degrees
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.0, 0.0]])
        >>> lifted = lift_low_degrees(edges, features, min_degree=2)
        >>> lifted.edge_index
        tensor([[0, 0, 1, 1, 2, 2],
                [1, 2, 0, 2, 0, 1]])
        >>> lifted.added, lifted.lifted, lifted.search
        (2, 4, 'exact')
    """
    require_edges(edge_index, edge_weight, "the lift")
    if not isinstance(features, Tensor) or features.dim() != 2 or features.is_complex():
        raise RawlsError("the lift needs features in a tensor of shape (n, d) of real numbers")
    features = features.detach()
    nodes = features.shape[0]
    require_nodes(edge_index, nodes, "the lift")
    least = whole_number(min_degree, "min_degree")
    if search not in _SEARCHES:
        raise RawlsError(f"search must be {', '.join(map(repr, _SEARCHES))}, not {search!r}")
    if features.layout not in (torch.strided, torch.sparse_csr):
        features = features.to_sparse(layout=torch.sparse_csr)
    bad = first_not_finite(features)
    if bad is not None:
        raise RawlsError(f"the lift needs finite features, but node {bad} has NaN or an infinity")
    if search == "auto":
        search = "exact" if nodes <= MAX_EXACT_NODES else "approximate"

    edges = edge_index.long()
    row, column = edges[:, edges[0] != edges[1]]
    # A neighbor in either direction counts once.
    pairs = torch.unique(torch.cat([row * nodes + column, column * nodes + row]))
    degree = torch.bincount(pairs // max(nodes, 1), minlength=nodes)
    low = (degree < least).nonzero().squeeze(1)
    exact = search == "exact"
    source, target = nearest_nodes(features, low, least - degree[low], pairs, exact=exact)
    source, target = source.to(edges.device), target.to(edges.device)
    new = torch.unique(torch.minimum(source, target) * nodes + torch.maximum(source, target))
    one, other = new // max(nodes, 1), new % max(nodes, 1)

    joined = torch.cat([edges, torch.stack([one, other]), torch.stack([other, one])], 1)
    order = (joined[0] * nodes + joined[1]).argsort(stable=True)
    weight = None
    if edge_weight is not None:
        weight = torch.cat([edge_weight, edge_weight.new_ones(2 * len(new))])[order]
    return LiftedGraph(joined[:, order], weight, len(new), len(low), search)
