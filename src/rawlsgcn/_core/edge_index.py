"""What every door that takes an edge index and its weights asks of them."""

from __future__ import annotations

from operator import index
from typing import Any

import torch
from torch import Tensor

from .errors import RawlsError


def require_edges(edge_index: Any, edge_weight: Any, what: str) -> None:
    """Refuse what has not the kind and the shape of edges; the numbers in it are not read."""
    if not isinstance(edge_index, Tensor):
        raise RawlsError(f"{what} needs an edge index, a tensor, not {type(edge_index).__name__}")
    whole = not (edge_index.is_floating_point() or edge_index.is_complex())
    if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.dtype == torch.bool:
        whole = False
    if not whole:
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
            f"{edge_index.shape[1]} edges: give one number an edge"
        )


def require_nodes(nodes: Tensor, num_nodes: Any, what: str) -> None:
    """Refuse nodes that are not numbered from 0 to num_nodes − 1."""
    try:
        count = index(num_nodes)
    except TypeError:
        count = -1
    if count < 0:
        raise RawlsError(f"{what} needs num_nodes, a whole number, not {num_nodes!r}")
    low, high = (int(end) for end in nodes.aminmax()) if nodes.numel() else (0, -1)
    if low < 0 or high >= count:
        raise RawlsError(
            f"{what} got node {low if low < 0 else high}, but the {count} nodes are numbered from "
            f"0 to {count - 1}"
        )


def require_floating(dtype: Any, what: str) -> None:
    """Refuse a type in which every weight below one would become zero."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise RawlsError(f"{what} gives weights in a floating-point type, not in {dtype}")
