"""Activation checkpointing: weights of ``fair_weights`` when the forward pass is repeated.

``torch.utils.checkpoint`` runs a part of the forward pass again during ``backward``, when
``fair_weights`` is over. So a layer stores what was set, by the adjacency that it received.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor

from .._core.errors import RawlsError
from .balanced_weights import same_graph


class CheckpointedFairWeights:
    """The weights that ``fair_weights`` has set for a layer, or had set for a repeated pass."""

    #: Class attributes, so that a layer turned fair in place has them too.
    _set_fair_weight: Tensor | None = None
    #: The weights of each adjacency that still exists, from the first use of fair_weights on.
    _stored_fair_weights: dict[int, tuple[weakref.ref[Any], Tensor | None]] | None = None

    def _store_fair_weight(self, adjacency: Any) -> None:
        current = self._set_fair_weight
        unused = current is None and self._stored_fair_weights is None
        if unused or _in_backward() or not isinstance(adjacency, (Tensor, SparseTensor)):
            return
        if self._stored_fair_weights is None:
            self._stored_fair_weights = {}
        stored, key = self._stored_fair_weights, id(adjacency)
        stored[key] = weakref.ref(adjacency, lambda _: stored.pop(key, None)), current

    def _current_fair_weight(self, adjacency: Any) -> Tensor | None:
        """Return the weights of ``fair_weights`` for this pass, or the one it repeats."""
        current, stored = self._set_fair_weight, self._stored_fair_weights
        if torch.compiler.is_compiling() or stored is None or not _in_backward():
            return current
        known = (
            [stored[id(adjacency)]] if id(adjacency) in stored else reversed(tuple(stored.values()))
        )
        for reference, weight in known:
            other = reference()
            if other is not None and same_graph(other, adjacency):
                return weight
        if current is None:
            raise RawlsError(
                f"{type(self).__name__} is computed again in the backward pass (activation "
                "checkpointing) on an edge index that was made within the checkpointed part, so "
                "the weights of rawlsgcn.nn.fair_weights for it are not known: make the edge "
                "index before and pass it in, or pass fair_weight to the layer."
            )
        return current


def _in_backward() -> bool:
    """Whether this thread is inside ``backward``, by what torch.utils.checkpoint goes by too."""
    return torch._C._current_graph_task_id() != -1
