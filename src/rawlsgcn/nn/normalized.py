"""torch_geometric's symmetric normalisation with the caching of its layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm


def normalised(
    layer: Any, x: Tensor, edge_index: Any, edge_weight: Tensor | None, improved: bool = False
) -> tuple[Any, Tensor | None]:
    """The edges and weights of Â as GCNConv, APPNP and GCN2Conv make them, cached where asked.

    The caches are torch_geometric's own, so a layer means the same before and after it is made
    fair, and ``reset_parameters`` empties them.
    """
    if not layer.normalize:
        return edge_index, edge_weight
    tensor = isinstance(edge_index, Tensor)
    cache = layer._cached_edge_index if tensor else layer._cached_adj_t
    if cache is not None:
        return (cache[0], cache[1]) if tensor else (cache, None)
    answer = gcn_norm(
        edge_index,
        edge_weight,
        x.size(layer.node_dim),
        improved,
        layer.add_self_loops,
        layer.flow,
        x.dtype,
    )
    if layer.cached:
        setattr(layer, "_cached_edge_index" if tensor else "_cached_adj_t", answer)
    return answer if tensor else (answer, None)
