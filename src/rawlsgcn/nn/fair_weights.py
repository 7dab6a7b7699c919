"""``fair_weights``: set the entries of B for all fair layers of a model during its forward pass.

Activation checkpointing (``torch.utils.checkpoint``) runs a part of the forward pass again during
``backward``, when ``fair_weights`` is over. So a layer stores what was set, by the adjacency that
it received.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.typing import SparseTensor

from .._core.errors import RawlsError
from .balanced_weights import same_graph


@contextmanager
def fair_weights(model: nn.Module, fair_weight: Tensor | Sequence[Tensor]) -> Iterator[None]:
    """Set the entries of Â_DS for every fair layer of ``model`` during its forward pass.

    For models whose own ``forward`` does not pass ``fair_weight`` on, such as torch_geometric's
    ``GCN``. It is needed only during the forward pass, not for ``backward``; activation
    checkpointing (``torch.utils.checkpoint``, reentrant or not), which repeats the forward pass
    there, uses the same weights again, by the edge index that the layer received.

    Args:
        model: A model with fair layers, wrapped (DistributedDataParallel, ``compile``) or not.
        fair_weight: One tensor for all layers, or one for each fair layer in the order of
            ``model.modules()``; each has one entry for each edge that its layer receives,
            optionally followed by one for each target node's self-loop.

    Raises:
        RawlsError: If the model has no fair layers, or not as many as there are tensors.

    Example:
        >>> import torch
        >>> import rawlsgcn as rg
        >>> from torch_geometric.nn import GCN
        >>> from rawlsgcn.nn import fair_weights, make_fair
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> model = make_fair(GCN(3, 8, num_layers=2, out_channels=2))
        >>> x = rg.balance(edge_index, num_nodes=3).scale
        >>> entries = torch.cat([x[edge_index[0]] * x[edge_index[1]], x * x])  # and the self-loops
        >>> with fair_weights(model, entries):
        ...     out = model(torch.randn(3, 3), edge_index)
        >>> out.shape
        torch.Size([3, 2])
    """
    if not isinstance(model, nn.Module):
        raise RawlsError(f"fair_weights takes a torch module, not {type(model).__name__}.")
    layers = [module for module in model.modules() if isinstance(module, FairWeightHolder)]
    if not layers:
        raise RawlsError("the model has no fair layers: call make_fair first.")
    several = isinstance(fair_weight, list | tuple)
    entries: list[Any] = list(fair_weight) if several else [fair_weight] * len(layers)
    for each in entries:
        require_fair_weight(each)
    if len(entries) != len(layers):
        raise RawlsError(f"there are {len(entries)} fair weights for {len(layers)} fair layers.")
    before = [layer._set_fair_weight for layer in layers]
    try:
        for layer, weight in zip(layers, entries, strict=True):
            layer._set_fair_weight = weight
        yield
    finally:
        for layer, kept in zip(layers, before, strict=True):
            layer._set_fair_weight = kept


class FairWeightHolder:
    """The weights that ``fair_weights`` has set for a layer, or had set for a repeated pass."""

    #: Class attributes, so that a layer turned fair in place has them too.
    _set_fair_weight: Tensor | None = None
    #: The weights of each adjacency that still exists, from the first use of fair_weights on.
    _stored_fair_weights: WeakIdKeyDictionary | None = None

    def _store_fair_weight(self, adjacency: Any) -> None:
        current = self._set_fair_weight
        unused = current is None and self._stored_fair_weights is None
        if unused or _in_backward() or not isinstance(adjacency, (Tensor, SparseTensor)):
            return
        if self._stored_fair_weights is None:
            self._stored_fair_weights = WeakIdKeyDictionary()
        self._stored_fair_weights[adjacency] = current

    def _current_fair_weight(self, adjacency: Any) -> Tensor | None:
        """Return the weights of ``fair_weights`` for this pass, or the one it repeats."""
        current, stored = self._set_fair_weight, self._stored_fair_weights
        if torch.compiler.is_compiling() or stored is None or not _in_backward():
            return current
        known: Any = stored
        pairs = [(adjacency, known[adjacency])] if adjacency in known else list(known.items())
        for other, weight in reversed(pairs):
            if same_graph(other, adjacency):
                return cast("Tensor | None", weight)
        if current is None:
            raise RawlsError(
                f"{type(self).__name__} is computed again in the backward pass (activation "
                "checkpointing) on an edge index that was made within the checkpointed part, so "
                "the weights of rawlsgcn.nn.fair_weights for it are not known: make the edge "
                "index before and pass it in, or pass fair_weight to the layer."
            )
        return current


def require_fair_weight(fair_weight: Any) -> None:
    """Raise an error for what cannot be entries of B; their number is checked later."""
    real = isinstance(fair_weight, Tensor) and fair_weight.is_floating_point()
    if not real or fair_weight.dim() != 1:
        kind = type(fair_weight).__name__
        if isinstance(fair_weight, Tensor):
            kind = f"one of shape {tuple(fair_weight.shape)} and {fair_weight.dtype}"
        raise RawlsError(
            f"fair_weight must be a tensor of floating-point numbers in one dimension, not {kind}."
        )


def _in_backward() -> bool:
    """Whether this thread is inside ``backward``, by what torch.utils.checkpoint goes by too."""
    return torch._C._current_graph_task_id() != -1
