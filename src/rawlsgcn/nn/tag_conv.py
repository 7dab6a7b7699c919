"""The topology-adaptive convolution with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import TAGConv
from torch_geometric.typing import OptTensor

from .fair_gradient import attach
from .fair_layer import FairLayer, ready
from .gcn_normalization import normalized_edges


class FairTAGConv(FairLayer, TAGConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`TAGConv`, whose weights learn from every node alike.

    .. math:: E = \sum_{k=0}^K P^k X W_k^\top + b, \qquad P = D^{-1/2} A D^{-1/2},

    .. math:: \frac{\partial J}{\partial W_k} =
        \Big(\frac{\partial J}{\partial E}\Big)^\top B^k X,

    with B the doubly stochastic form of A + I: A itself may have none.
    """

    propagate_type: ClassVar = {"x": Tensor, "edge_weight": OptTensor}

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, *(lin.weight for lin in self.lins)):
            plain: Tensor = super().forward(x, edge_index, edge_weight)
            return plain
        weights, nodes = [ready(lin, x) for lin in self.lins], x.shape[self.node_dim]
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weights[0].dtype)
        if self.normalize:
            edge_index, edge_weight = normalized_edges(
                self, x, edge_index, edge_weight, add_self_loops=False
            )
        h, out = x, functional.linear(x, weights[0].detach())
        for weight in weights[1:]:
            h = self.propagate(edge_index, x=h, edge_weight=edge_weight)
            out = out + functional.linear(h, weight.detach())
        out = attach(out, x, matrix, weights, list(range(self.K + 1)), self.node_dim)
        return out if self.bias is None else out + self.bias
