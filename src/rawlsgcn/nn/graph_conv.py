"""The convolution of Morris et al. (k-GNN) with the fair gradient."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import GraphConv
from torch_geometric.typing import Size

from .fair_layer import FairLayer


class FairGraphConv(FairLayer, GraphConv):  # type: ignore[misc]
    r"""The convolution ``GraphConv`` of k-GNNs with the fair gradient of the neighbors' weight.

    .. math:: E = A X W_{rel}^\top + b + X W_{root}^\top, \qquad
        \frac{\partial J}{\partial W_{rel}} = \Big(\frac{\partial J}{\partial E}\Big)^\top B X,

    with A the (weighted) adjacency matrix, and B the doubly stochastic form of A + I: A itself may
    have none. In the ordinary gradients of W_root and b every node has the weight one already. The
    node-wise formulation of the forward pass is

    .. math:: e_i = W_{rel} \sum_{j \in N(i)} a_{ij} x_j + b + W_{root} x_i.

    Args:
        in_channels: Size of the input features, or a pair of those of sources and targets.
        out_channels: Size of the output features.
        aggr: ``"add"`` or ``"mean"``.
        bias: Whether to learn an additive bias.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})` or a pair of those of sources and targets,
          edge indices :math:`(2, |E|)` or sparse matrix, edge weights :math:`(|E|)` *(optional)*,
          fair weights :math:`(|E|)` or :math:`(|E| + |V_t|)` *(optional)*
        - **output:** node features :math:`(|V_t|, F_{out})`
    """

    _aggregates_first = _bipartite = True

    def forward(  # type: ignore[override]
        self,
        x: Any,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        size: Size = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        return self._compute(x, edge_index, fair_weight, edge_weight=edge_weight, size=size)

    def _learning(self) -> list[tuple[Any, int]]:
        return [(self.lin_rel, 1)]
