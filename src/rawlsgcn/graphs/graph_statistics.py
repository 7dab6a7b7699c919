"""The figures that describe a graph, as in the paper's table of datasets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch_geometric.data import Data


@dataclass(frozen=True)
class Statistics:
    """The figures that ``rawlsgcn datasets`` prints for a graph.

    ``edges`` counts arcs, both directions of an undirected edge; for a graph stored with directed
    arcs and symmetrized here (Chameleon) it counts the stored arcs, as the paper does, and
    ``symmetric_edges`` what the methods work on. Degrees are numbers of neighbors in A.
    """

    nodes: int
    edges: int
    symmetric_edges: int
    features: int
    classes: int
    median_degree: int
    max_degree: int
    isolated_nodes: int
    distinct_degrees: int

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, for JSON."""
        return asdict(self)


def statistics(graph: Data) -> Statistics:
    """Compute the figures that describe a graph.

    Args:
        graph: A graph from ``load``, ``read``, ``synthetic`` or ``check``.

    Returns:
        Its sizes and degrees.
    """
    nodes, arcs = int(graph.num_nodes), int(graph.edge_index.size(1))
    degree = torch.bincount(graph.edge_index[0], minlength=nodes)
    x, y = graph.get("x"), graph.get("y")
    return Statistics(
        nodes=nodes,
        edges=int(graph.get("stored_edges") or arcs),
        symmetric_edges=arcs,
        features=0 if x is None else int(x.size(1)),
        classes=0 if y is None else int(y.max()) + 1,
        median_degree=int(degree.median()),
        max_degree=int(degree.max()),
        isolated_nodes=int((degree == 0).sum()),
        distinct_degrees=len(torch.unique(degree)),
    )
