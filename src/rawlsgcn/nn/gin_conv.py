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
    """A Linear layer that learns by the fair gradient while its convolution runs."""

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
    """Return the Linear layer that a GINConv's network begins with, or None."""
    first = _first(network)
    return first if isinstance(first, _FirstLinear) or type(first) in _FAIR else None


def _first(network: Any) -> Any:
    if isinstance(network, MLP):
        return network.lins[0]
    return network[0] if isinstance(network, nn.Sequential) and len(network) else network


class FairGINConv(FairLayer, GINConv):  # type: ignore[misc]
    r"""The graph isomorphism convolution ``GINConv`` with the fair gradient of its first weight.

    .. math:: E = h(M X), \qquad M = A + (1 + \epsilon) I, \qquad h(U) = h'(U W_1^\top + b_1),

    .. math:: \frac{\partial J}{\partial W_1} =
        \Big(\frac{\partial J}{\partial E_1}\Big)^\top B X, \qquad E_1 = M X W_1^\top + b_1,

    with B the doubly stochastic form of M. Only the first Linear layer of the network acts on
    aggregated features; in the gradients of the later layers and of ε every node has the weight one
    already. The node-wise formulation of the forward pass is

    .. math:: e_i = h\Big((1 + \epsilon)\, x_i + \sum_{j \in N(i)} x_j\Big).

    Args:
        nn: The network h, which begins with a ``Linear`` layer: a ``Linear``, a ``Sequential`` or
            torch_geometric's ``MLP``.
        eps: The initial ε.
        train_eps: Whether ε is learned.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum, or the network does not begin with a Linear layer.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})` or a pair of those of sources and targets,
          edge indices :math:`(2, |E|)` or sparse matrix, fair weights
          :math:`(|E|)` or :math:`(|E| + |V_t|)` *(optional)*
        - **output:** node features :math:`(|V_t|, F_{out})`

    Example:
        >>> import torch
        >>> from rawlsgcn.nn import FairGINConv
        >>> edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # a star
        >>> x = torch.randn(4, 3)
        >>> layer = FairGINConv(torch.nn.Linear(3, 2))
        >>> layer(x, edge_index).shape
        torch.Size([4, 2])
    """

    propagate_type: ClassVar = {"x": OptPairTensor}

    @staticmethod
    def refusal(layer: Any) -> str | None:
        """Return why a ``GINConv`` has no fair form, or None."""
        if type(layer.aggr_module) is MeanAggregation:
            return (
                "with the mean, the node itself and its neighbors enter with other weights than "
                "in A + (1 + ε) I, whose doubly stochastic form is used; use the sum"
            )
        first = _first(layer.nn)
        if isinstance(first, LazyLinear):
            return (
                "its network begins with a LazyLinear without a size; set the "
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
        """Make the network's first Linear layer learn by the fair gradient."""
        first = first_linear(self.nn)
        first.__class__ = _FAIR.get(type(first), type(first))

    def forward(
        self,
        x: Any,
        edge_index: Any,
        size: Size = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the layer.

        Args:
            x: Node features (nodes, inputs), or a pair of those of sources and of targets.
            edge_index: Edge indices (2, edges), or the transposed adjacency as a sparse matrix.
            size: The numbers of source and target nodes of a bipartite block.
            fair_weight: B's entries at the edges (edges,), or at the edges and on the diagonal
                (edges + targets,); by default the graph is balanced.

        Returns:
            Node features (targets, outputs).

        Raises:
            RawlsError: If the graph has no doubly stochastic form, or ``fair_weight`` is invalid.
        """
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
