"""torch_geometric's symmetric normalization ``gcn_norm``, with the caches of its layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm


def normalized_edges(
    layer: Any,
    x: Tensor,
    edge_index: Any,
    edge_weight: Tensor | None,
    *,
    add_self_loops: bool,
    improved: bool = False,
) -> tuple[Any, Tensor | None]:
    """Return the edges and weights of Â as ``gcn_norm`` makes them for a layer."""
    edges = gcn_norm(
        edge_index,
        edge_weight,
        x.size(layer.node_dim),
        improved,
        add_self_loops,
        layer.flow,
        x.dtype,
    )
    return edges if isinstance(edge_index, Tensor) else (edges, None)


def cached_normalized_edges(
    layer: Any, x: Tensor, edge_index: Any, edge_weight: Tensor | None, improved: bool = False
) -> tuple[Any, Tensor | None]:
    """Return the edges and weights of Â for GCNConv and GCN2Conv, from their cache if it is filled.

    The caches are torch_geometric's own, so a layer means the same before and after ``make_fair``,
    and ``reset_parameters`` empties them.
    """
    if not layer.normalize:
        return edge_index, edge_weight
    tensor = isinstance(edge_index, Tensor)
    cache = layer._cached_edge_index if tensor else layer._cached_adj_t
    if cache is not None:
        return (cache[0], cache[1]) if tensor else (cache, None)
    edges = normalized_edges(
        layer, x, edge_index, edge_weight, add_self_loops=layer.add_self_loops, improved=improved
    )
    if layer.cached:
        if tensor:
            layer._cached_edge_index = edges
        else:
            layer._cached_adj_t = edges[0]
    return edges
