"""Checks of arguments that several public functions take: edges, node ids, floating-point types."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .errors import RawlsError, reading

#: The largest array of node ids, in bytes.
_MAX_ID_BYTES = 1 << 30


def require_edges(edge_index: Any, edge_weight: Any, what: str) -> None:
    """Raise an error for an edge index or weights of the wrong type or shape, without reading them.

    ``what`` names the caller in the message.
    """
    if not isinstance(edge_index, Tensor):
        raise RawlsError(f"{what} needs an edge index, a tensor, not {type(edge_index).__name__}")
    if not is_edge_index(edge_index):
        raise RawlsError(
            f"{what} needs an edge index of shape (2, E) and integers, not of shape "
            f"{tuple(edge_index.shape)} and {edge_index.dtype}"
        )
    if edge_weight is None:
        return
    if not isinstance(edge_weight, Tensor) or edge_weight.is_complex():
        kind = getattr(edge_weight, "dtype", type(edge_weight).__name__)
        raise RawlsError(f"{what} needs edge weights in a tensor of real numbers, not {kind}")
    if edge_weight.shape != edge_index.shape[1:]:
        raise RawlsError(
            f"{what} got edge weights of shape {tuple(edge_weight.shape)} for "
            f"{edge_index.shape[1]} edges: pass one weight for each edge"
        )


def is_edge_index(tensor: Tensor) -> bool:
    """Whether a tensor has the shape (2, E) and integers."""
    other = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
    return tensor.dim() == 2 and tensor.shape[0] == 2 and not other


def whole_number(value: Any, name: str) -> int:
    """Return a whole number of at least 0, or raise an error that names the argument."""
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except (TypeError, ValueError, RuntimeError):
        number = -1
    if number < 0:
        given = " ".join(repr(value).split())[:40]
        raise RawlsError(f"{name} must be a whole number of at least 0, not {given}")
    return number


def require_nodes(nodes: Tensor, num_nodes: Any, what: str) -> None:
    """Raise an error for nodes outside 0 to ``num_nodes`` − 1."""
    count = whole_number(num_nodes, f"num_nodes of {what}")
    low, high = (int(end) for end in nodes.aminmax()) if nodes.numel() else (0, -1)
    if low < 0 or high >= count:
        raise RawlsError(
            f"{what} got node {low if low < 0 else high}, but the {count} nodes are numbered from "
            f"0 to {count - 1}"
        )


def require_floating(dtype: Any, what: str) -> None:
    """Raise an error for a type in which every weight below one would become zero."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise RawlsError(f"{what} computes weights in a floating-point type, not in {dtype}")


def node_id_array(node_ids: Sequence[Any] | NDArray[Any] | None, nodes: int) -> NDArray[Any]:
    """Return the node ids as an array of numbers or of text, which is stored without pickle.

    In an array of text each id takes as much memory as the longest one, hence the limit.
    """
    if node_ids is None:
        return np.arange(nodes)
    if not isinstance(node_ids, np.ndarray) or node_ids.dtype == object:
        longest = max((len(str(each)) for each in node_ids), default=0)
        if 4 * longest * len(node_ids) > _MAX_ID_BYTES:
            raise RawlsError(
                f"a node id of {longest:,} letters makes an array of {len(node_ids):,} ids too "
                "large: shorten it"
            )
    with reading("the node ids", "an array"):
        ids = np.asarray(node_ids)
    if ids.shape != (nodes,):
        raise RawlsError(
            f"there are node ids of the shape {ids.shape} for {nodes} nodes: pass one for each node"
        )
    return ids if ids.dtype.kind in "biufU" else np.asarray([str(each) for each in node_ids])
