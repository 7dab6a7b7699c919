"""``make_fair``: convert the convolutions of an existing model to fair ones, in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeVar

from torch import nn
from torch.fx import GraphModule
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GCN2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    HeteroConv,
    MessagePassing,
    SAGEConv,
    SGConv,
    TAGConv,
)

from .._core.errors import RawlsError
from .appnp import FairAPPNP
from .fair_layer import FairLayer
from .gcn2_conv import FairGCN2Conv
from .gcn_conv import FairGCNConv
from .gin_conv import FairGINConv
from .graph_conv import FairGraphConv
from .sage_conv import FairSAGEConv
from .sg_conv import FairSGConv
from .tag_conv import FairTAGConv

Model = TypeVar("Model", bound=nn.Module)

#: torch_geometric's layers and their fair forms.
FAIR_LAYERS: dict[type[nn.Module], type[FairLayer]] = {
    GCNConv: FairGCNConv,
    SAGEConv: FairSAGEConv,
    GraphConv: FairGraphConv,
    GINConv: FairGINConv,
    SGConv: FairSGConv,
    GCN2Conv: FairGCN2Conv,
    TAGConv: FairTAGConv,
    APPNP: FairAPPNP,
}
#: Where MessagePassing keeps the functions that may change what is passed.
_HOOKS = tuple(
    f"_{part}_forward_{when}hooks"
    for part in ("propagate", "message", "aggregate", "message_and_aggregate")
    for when in ("pre_", "")
)
_ATTENTION = ("GAT", "Transformer", "Attention", "AGNN", "HGT", "HAN", "HEAT", "FAConv", "RGAT")


def make_fair(model: Model, weightless: Literal["fair", "plain"] | None = None) -> Model:
    """Convert every convolution of ``model`` to the fair gradient (RawlsGCN-Grad), in place.

    Like ``torch.nn.SyncBatchNorm.convert_sync_batchnorm``. Layers and parameters stay the same
    objects, so an existing optimizer stays valid; predictions and state dict do not change. If any
    layer cannot be converted, nothing is changed.

    Args:
        model: Any module with torch_geometric's GCNConv, SAGEConv, GraphConv, GINConv, SGConv,
            GCN2Conv, TAGConv or APPNP in it, at any depth, or one of these itself.
        weightless: How to treat propagation without weights (APPNP). "fair": the gradient of its
            input is the fair one, which is correct if the layers before it are Linear layers.
            "plain": it is not changed. By default "fair" in a model whose other layers do not
            propagate; in other models it must be set.

    Returns:
        The same ``model``.

    Raises:
        RawlsError: If a layer has no fair gradient or none is known, or if it joins two types of
            nodes of a heterogeneous model (a relation of a type with itself is balanced by itself);
            the message names the path of the layer in the model.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> from rawlsgcn.nn import make_fair
        >>> make_fair(GCN(16, 32, num_layers=2, out_channels=7)).convs
        ModuleList(
          (0): FairGCNConv(16, 32)
          (1): FairGCNConv(32, 7)
        )
    """
    if not isinstance(model, nn.Module):
        raise RawlsError(f"make_fair takes a torch module, not {type(model).__name__}.")
    if weightless not in (None, "fair", "plain"):
        raise RawlsError(f"weightless is 'fair' or 'plain', not {weightless!r}.")
    found = {path: layer for path, layer in model.named_modules() if _propagates(layer)}
    if not found:
        raise RawlsError("make_fair found no graph convolution of torch_geometric in the model.")
    propagation = [path for path, layer in found.items() if isinstance(layer, APPNP)]
    if propagation and weightless is None and len(propagation) < len(found):
        raise RawlsError(
            f"'{propagation[0]}' (APPNP) has no weights, and other layers of the model propagate "
            "too: use make_fair(model, weightless='fair') if the layers before it are Linear "
            "layers, or weightless='plain' to keep it as it is."
        )
    if weightless == "plain":
        found = {path: layer for path, layer in found.items() if path not in propagation}
        if not found:
            raise RawlsError(
                "with weightless='plain' nothing in the model would become fair: all that "
                "propagates in it is APPNP; use weightless='fair'."
            )
    between = _relations(model)
    for path, layer in found.items():
        reason = between.get(layer) or _refusal(layer)
        if reason is not None:
            where = f"'{path}' ({type(layer).__name__})" if path else type(layer).__name__
            raise RawlsError(f"{where} cannot be made fair: {reason}.")
    for layer in found.values():
        layer.__class__ = FAIR_LAYERS.get(type(layer), type(layer))
        layer.prepare()
    return model


def _propagates(layer: nn.Module) -> bool:
    dense = type(layer).__module__.startswith("torch_geometric.nn.dense.dense_")
    return isinstance(layer, MessagePassing) or (dense and type(layer).__name__.endswith("Conv"))


def _relations(model: nn.Module) -> dict[nn.Module, str]:
    """Return the layers of HeteroConv and to_hetero that join two types of nodes, and why not."""
    found: dict[nn.Module, str] = {}
    for module in model.modules():
        relations: Iterable[tuple[tuple[str, ...], nn.Module]] = ()
        if isinstance(module, HeteroConv):
            relations = module.convs.items()
        elif isinstance(module, GraphModule):  # of to_hetero: a layer for each SOURCE__NAME__TARGET
            dicts = [each for each in module.modules() if isinstance(each, nn.ModuleDict)]
            named = [(key.split("__"), layer) for each in dicts for key, layer in each.items()]
            relations = [(tuple(key), layer) for key, layer in named if len(key) > 2]
        for relation, layer in relations:
            # A type's name may have the separator in it too.
            ends = range(1, (len(relation) + 1) // 2)
            if not any(relation[:end] == relation[-end:] for end in ends):
                found[layer] = (
                    f"it joins two types of nodes ({relation[0]} to {relation[-1]}), and such a "
                    "matrix, which is not square, has no doubly stochastic form; convert a model "
                    "of one type of nodes, as of data.to_homogeneous()"
                )
    return found


def _refusal(layer: nn.Module) -> str | None:
    """Why a layer that propagates cannot be made fair, or None."""
    name = type(layer).__name__
    if any(getattr(layer, hooks, None) for hooks in _HOOKS):
        return (
            "functions are hooked into its messages, as torch_geometric's to_hetero_with_bases "
            "does, so that the matrix it multiplies by is not known"
        )
    if isinstance(layer, FairLayer):
        return None
    if type(layer) is ChebConv:
        return (
            "a Chebyshev polynomial of the Laplacian has negative entries, and such a matrix has "
            "no doubly stochastic form"
        )
    if any(word in name for word in _ATTENTION):
        return (
            "attention computes its matrix from the weights, so there is no fixed matrix whose "
            "degrees could be set to one; use a layer without attention, or balance its input "
            "with rawlsgcn.transforms.DoublyStochastic where it takes edge weights"
        )
    if type(layer) not in FAIR_LAYERS:
        known = ", ".join(sorted(kind.__name__ for kind in FAIR_LAYERS))
        return f"no fair gradient is known for it, only for {known} and not for their subclasses"
    return FAIR_LAYERS[type(layer)].refusal(layer)
