"""The graph isomorphism network's convolution with the fair gradient."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import LazyLinear, functional
from torch_geometric.nn import MLP, GINConv, MeanAggregation
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.typing import OptPairTensor, Size, SparseTensor

from .balanced_weights import Loops
from .fair_gradient import FairMatrix, attach
from .fair_layer import FairLayer, ready


class _FirstLinear:
    """A Linear layer that, while its convolution runs, learns by the matrix given to it."""

    _route: tuple[Tensor, FairMatrix, int] | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        if self._route is None:
            plain: Tensor = super().forward(inputs)  # type: ignore[misc]
            return plain
        weight, (h, matrix, node_dim) = self.weight, self._route  # type: ignore[attr-defined]
        out = functional.linear(inputs, weight.detach(), self.bias)  # type: ignore[attr-defined]
        return attach(out, h, matrix, [weight], [1], node_dim)


class FairLinear(_FirstLinear, Linear):  # type: ignore[misc]
    """torch_geometric's Linear as the first layer of a fair GINConv's network."""


class FairTorchLinear(_FirstLinear, nn.Linear):
    """torch's Linear as the first layer of a fair GINConv's network."""


_FAIR = {Linear: FairLinear, nn.Linear: FairTorchLinear}


def first_linear(network: Any) -> Any:
    """The Linear layer that a GINConv's network begins with, or None."""
    first = _first(network)
    return first if isinstance(first, _FirstLinear) or type(first) in _FAIR else None


def _first(network: Any) -> Any:
    if isinstance(network, MLP):
        return network.lins[0]
    return network[0] if isinstance(network, nn.Sequential) and len(network) else network


class FairGINConv(FairLayer, GINConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`GINConv`, whose network learns from every node alike.

    .. math:: E = h(M X), \qquad M = A + (1 + \epsilon) I, \qquad h(U) = h'(U W_1^\top + b_1),

    .. math:: \frac{\partial J}{\partial W_1} =
        \Big(\frac{\partial J}{\partial E_1}\Big)^\top B X, \qquad E_1 = M X W_1^\top + b_1,

    with B the doubly stochastic form of M. The first Linear layer of the network is the only one
    that acts on aggregated features; the layers after it, and ε, count every node once already.
    """

    propagate_type: ClassVar = {"x": OptPairTensor}

    @staticmethod
    def refusal(layer: Any) -> str | None:
        if type(layer.aggr_module) is MeanAggregation:
            return (
                "with the mean, the node itself and its neighbours enter with other weights than "
                "in A + (1 + ε) I, whose doubly stochastic form is the one known; use the sum"
            )
        first = _first(layer.nn)
        if isinstance(first, LazyLinear):
            return (
                "its network begins with a LazyLinear that does not know its size yet; give the "
                "size, or call the layer once before"
            )
        if first_linear(layer.nn) is None:
            return (
                f"its network begins with {type(first).__name__}, not with torch's or "
                "torch_geometric's own Linear layer (by itself, in a Sequential or in an MLP), "
                "which is where the degrees enter"
            )
        return FairLayer.refusal(layer)

    def prepare(self) -> None:
        """Let the network's first Linear layer take its gradient from the convolution."""
        first = first_linear(self.nn)
        first.__class__ = _FAIR.get(type(first), type(first))

    def forward(
        self,
        x: Any,
        edge_index: Any,
        size: Size = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        first = first_linear(self.nn)
        if not self._learns(edge_index, first.weight):
            plain: Tensor = super().forward(x, edge_index, size)
            return plain
        x, root = (x, x) if isinstance(x, Tensor) else x
        weight = ready(first, x)
        out = self.propagate(edge_index, x=(x, root), size=size)
        sizes = (x.shape[self.node_dim], out.shape[self.node_dim])
        if root is not None:
            out = out + (1 + self.eps) * root
        if isinstance(edge_index, SparseTensor):
            edge_index = edge_index.set_value(None, layout=None)  # as the parent's aggregation
        matrix = self._fair_matrix(edge_index, None, fair_weight, sizes, weight.dtype)
        with _routed(first, (x, matrix, self.node_dim)):
            answer: Tensor = self.nn(out)
        return answer

    def _loops(self) -> Loops:
        return Loops(1 + self.eps.detach(), everywhere=True)


@contextmanager
def _routed(first: Any, route: tuple[Tensor, FairMatrix, int]) -> Iterator[None]:
    first._route = route
    try:
        yield
    finally:
        first._route = None
