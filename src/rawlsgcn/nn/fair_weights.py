"""``fair_weights``: set the entries of B for all fair layers of a model during its forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from .._core.errors import RawlsError
from .fair_layer import FairLayer, require_fair_weight


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
    layers = [module for module in model.modules() if isinstance(module, FairLayer)]
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
