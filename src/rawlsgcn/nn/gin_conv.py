"""The graph isomorphism network's convolution with the fair gradient."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import LazyLinear
from torch_geometric.nn import MLP, GINConv, MeanAggregation
from torch_geometric.typing import Size

from .balanced_weights import Loops
from .fair_layer import FairLayer
from .fair_linear import PLAIN_LINEAR, FairLinear


def _first(network: Any) -> Any:
    """Return the layer that a GINConv's network begins with."""
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

    _aggregates_first = _bipartite = True

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
        if not isinstance(first, FairLinear) and type(first) not in PLAIN_LINEAR:
            return (
                f"its network begins with {type(first).__name__}, not with torch's or "
                "torch_geometric's own Linear layer (by itself, in a Sequential or in an MLP), "
                "which is where the degrees enter"
            )
        return FairLayer.refusal(layer)

    def forward(
        self, x: Any, edge_index: Any, size: Size = None, fair_weight: Tensor | None = None
    ) -> Tensor:
        return self._compute(x, edge_index, fair_weight, size=size)

    def _learning(self) -> list[tuple[Any, int]]:
        return [(_first(self.nn), 1)]

    def _loops(self) -> Loops:
        return Loops(1 + self.eps.detach(), everywhere=True)
