"""What the fair layers share: where the entries of B come from, and how a caller gives them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation
from torch_geometric.nn.dense.linear import is_uninitialized_parameter
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_sparse

from .._core.argument_checks import require_edges
from .._core.errors import RawlsError
from .balanced_weights import Loops, edges_of, fair_weight_of, same_graph
from .fair_gradient import FairMatrix


class FairLayer:
    """The part of a fair layer that torch_geometric's parent class does not have.

    The entries of B come from the first of these that there is: the ``fair_weight`` argument of
    ``forward``, the one given with :func:`fair_weights`, the cached ones of a layer with
    ``cached=True``, the balanced form of the graph at hand.
    """

    #: Class attributes, so that a layer turned fair in place has them too.
    _given_fair_weight: Tensor | None = None
    _cached_fair: FairMatrix | None = None
    #: What was given for each adjacency that is still alive, from the first use of fair_weights on.
    _given_before: dict[int, tuple[weakref.ref[Any], Tensor | None]] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every constructor refuse what ``make_fair`` refuses, and keep its signature."""
        super().__init_subclass__(**options)
        parent = cls.__init__

        @wraps(parent)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            parent(self, *args, **kwargs)
            reason = self.refusal(self)
            if reason is not None:
                raise RawlsError(f"{type(self).__name__} cannot be made: {reason}.")
            self.prepare()

        cls.__init__ = checked  # type: ignore[method-assign]

    @staticmethod
    def refusal(layer: Any) -> str | None:
        """Why a layer of the parent class, as it was made, has no fair form, or None."""
        if type(layer.aggr_module) not in (SumAggregation, MeanAggregation):
            return (
                f"its aggregation '{layer.aggr}' is not a product with a matrix, as sum and mean "
                "are"
            )
        return None

    def prepare(self) -> None:
        """What a layer needs to become fair beyond its class."""

    def _learns(self, adjacency: Any, *weights: Tensor) -> bool:
        """Whether any of these weights is to receive a gradient from what is computed now.

        Every forward pass asks this first. It notes the weights that :func:`fair_weights` gives for
        this ``adjacency``: activation checkpointing runs the pass again during ``backward``, when
        they are no longer given, and with ``use_reentrant=True`` nothing learns in the first pass.
        """
        if not torch.compiler.is_compiling():
            self._note_given(adjacency)
        return torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)

    def _note_given(self, adjacency: Any) -> None:
        given = self._given_fair_weight
        unused = given is None and self._given_before is None
        if unused or _in_backward() or not isinstance(adjacency, Tensor | SparseTensor):
            return
        if self._given_before is None:
            self._given_before = {}
        notes, key = self._given_before, id(adjacency)
        notes[key] = weakref.ref(adjacency, lambda _: notes.pop(key, None)), given

    def _given(self, adjacency: Any) -> Tensor | None:
        """The weights of :func:`fair_weights` for this pass, or for the one that it repeats."""
        given, notes = self._given_fair_weight, self._given_before
        if torch.compiler.is_compiling() or notes is None or not _in_backward():
            return given
        known = (
            [notes[id(adjacency)]] if id(adjacency) in notes else reversed(tuple(notes.values()))
        )
        for reference, weight in known:
            other = reference()
            if other is not None and same_graph(other, adjacency):
                return weight
        if given is None:
            raise RawlsError(
                f"{type(self).__name__} is computed again in the backward pass (activation "
                "checkpointing) on an edge index that was made within the checkpointed part, so "
                "the weights that rawlsgcn.nn.fair_weights gave for it are not known: make the "
                "edge index before and pass it in, or give the layer fair_weight."
            )
        return given

    def _fair_matrix(
        self,
        adjacency: Any,
        edge_weight: Tensor | None,
        fair_weight: Tensor | None,
        sizes: tuple[int, int],
        dtype: torch.dtype,
    ) -> FairMatrix:
        """B for a graph of ``sizes`` (sources, targets)."""
        if not is_sparse(adjacency):
            require_edges(adjacency, edge_weight, type(self).__name__)
        fair_weight = self._given(adjacency) if fair_weight is None else fair_weight
        if fair_weight is not None:
            require_fair_weight(fair_weight)
            return self._by_edges(adjacency, fair_weight.detach(), sizes)
        # Compiled code cannot hold a sparse matrix; it asks again, and what is known is remembered.
        cached = getattr(self, "cached", False) and not torch.compiler.is_compiling()
        if cached and self._cached_fair is not None:
            return self._cached_fair
        sources, targets = sizes
        if sources != targets:
            raise RawlsError(
                f"{type(self).__name__} got a block of {sources} source and {targets} target "
                "nodes, which has no doubly stochastic form of its own: if it is a sample, give "
                "the whole graph's entries as fair_weight, or use rawlsgcn.nn.fair_weights; if it "
                "is a relation between two types of nodes, use a layer that is not fair."
            )
        # Sums over hubs need the digits, whatever the weights are kept in.
        dtype = torch.promote_types(dtype, torch.float32)
        entries, csr = fair_weight_of(adjacency, edge_weight, sources, self._loops(), dtype)
        matrix = (
            self._by_edges(adjacency, entries, sizes)
            if csr is None
            else FairMatrix(csr=csr, csr_transposed=csr)
        )
        if cached:
            self._cached_fair = matrix
        return matrix

    def _by_edges(self, adjacency: Any, fair_weight: Tensor, sizes: tuple[int, int]) -> FairMatrix:
        edges, targets = edges_of(adjacency, None)[0], sizes[1]
        count, loop = edges.shape[1], None
        if fair_weight.shape[0] == count + targets:
            fair_weight, loop = fair_weight[:count], fair_weight[count:]
        elif fair_weight.shape[0] != count:
            raise RawlsError(
                f"fair_weight has {fair_weight.shape[0]} entries, but {type(self).__name__} got "
                f"{count} edges and {targets} target nodes: give one entry an edge, or these "
                "followed by one a node for its self-loop."
            )
        source, target = edges if self.flow == "source_to_target" else edges.flip(0)  # type: ignore[attr-defined]
        return FairMatrix(source, target, fair_weight, loop)

    def _loops(self) -> Loops:
        """The self-loops of the layer's matrix: its own, or one of weight 1 where it has none."""
        # gcn_norm takes the last of a node's self-loops where it adds them; messages add up.
        last = getattr(self, "normalize", True) and getattr(self, "add_self_loops", False)
        return Loops(1.0, last=last)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles begin without what was cached: torch cannot copy a CSR matrix."""
        state = self.__dict__
        return {name: state[name] for name in state.keys() - {"_cached_fair", "_given_before"}}

    def reset_parameters(self) -> None:
        super().reset_parameters()  # type: ignore[misc]
        self._cached_fair = None


def require_fair_weight(fair_weight: Any) -> None:
    """Refuse what cannot be entries of B; whether they are as many as the edges is seen later."""
    real = isinstance(fair_weight, Tensor) and fair_weight.is_floating_point()
    if not real or fair_weight.dim() != 1:
        kind = type(fair_weight).__name__
        if isinstance(fair_weight, Tensor):
            kind = f"one of shape {tuple(fair_weight.shape)} and {fair_weight.dtype}"
        raise RawlsError(
            f"fair_weight is a tensor of floating-point numbers in one dimension, not {kind}."
        )


def _in_backward() -> bool:
    """Whether this thread is inside ``backward``, by what torch.utils.checkpoint goes by too."""
    return torch._C._current_graph_task_id() != -1


def ready(linear: Any, inputs: Tensor) -> Tensor:
    """The weight of a Linear layer, given its size first if it waits for its first input."""
    if is_uninitialized_parameter(linear.weight):
        linear.initialize_parameters(linear, (inputs,))
    weight: Tensor = linear.weight
    return weight


@contextmanager
def fair_weights(model: nn.Module, fair_weight: Tensor | Sequence[Tensor]) -> Iterator[None]:
    """Give the entries of Â_DS to every fair layer of ``model`` while its forward pass runs.

    For models whose own ``forward`` does not pass ``fair_weight`` on, such as torch_geometric's
    ``GCN``. It is needed only while the forward pass runs, not for ``backward``; activation
    checkpointing (``torch.utils.checkpoint``, reentrant or not), which repeats the forward pass
    there, finds the same weights again by the edge index that the layer received.

    Args:
        model: a model with fair layers, wrapped (DistributedDataParallel, ``compile``) or not.
        fair_weight: one tensor for all layers, or one a fair layer in the order of
            ``model.modules()``; each has one entry an edge that its layer receives, optionally
            followed by one a target node for its self-loop.
    """
    if not isinstance(model, nn.Module):
        raise RawlsError(f"fair_weights takes a torch module, not {type(model).__name__}.")
    layers = [module for module in model.modules() if isinstance(module, FairLayer)]
    if not layers:
        raise RawlsError("the model has no fair layers to give weights to: call make_fair first.")
    several = isinstance(fair_weight, list | tuple)
    given: list[Any] = list(fair_weight) if several else [fair_weight] * len(layers)
    for each in given:
        require_fair_weight(each)
    if len(given) != len(layers):
        raise RawlsError(f"{len(given)} fair weights were given for {len(layers)} fair layers.")
    before = [layer._given_fair_weight for layer in layers]
    try:
        for layer, weight in zip(layers, given, strict=True):
            layer._given_fair_weight = weight
        yield
    finally:
        for layer, kept in zip(layers, before, strict=True):
            layer._given_fair_weight = kept
