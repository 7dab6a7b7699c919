"""The topology-adaptive convolution with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import TAGConv
from torch_geometric.typing import OptTensor

from .fair_gradient import FairMatrix, attach
from .fair_layer import HomogeneousFairLayer, ready
from .gcn_conv import normalized_edges


class FairTAGConv(HomogeneousFairLayer, TAGConv):  # type: ignore[misc]
    r"""The topology-adaptive convolution ``TAGConv`` with the fair gradient.

    .. math:: E = \sum_{k=0}^K P^k X W_k^\top + b, \qquad P = D^{-1/2} A D^{-1/2},

    .. math:: \frac{\partial J}{\partial W_k} =
        \Big(\frac{\partial J}{\partial E}\Big)^\top B^k X,

    with B the doubly stochastic form of A + I: A itself may have none. Node by node, the k-th power
    is k times

    .. math:: x_i \leftarrow \sum_{j \in N(i)} \frac{a_{ij}}{\sqrt{d_i d_j}}\, x_j.

    Args:
        in_channels: Size of the input features.
        out_channels: Size of the output features.
        K: Number of hops.
        bias: Whether to learn an additive bias.
        normalize: Whether to apply the symmetric normalization; otherwise P = A.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})`, edge indices :math:`(2, |E|)` or sparse
          matrix, edge weights :math:`(|E|)` *(optional)*, fair weights :math:`(|E|)` or
          :math:`(|E| + |V|)` *(optional)*
        - **output:** node features :math:`(|V|, F_{out})`
    """

    propagate_type: ClassVar = {"x": Tensor, "edge_weight": OptTensor}

    def _learned(self, x: Tensor) -> list[Tensor]:
        return [lin.weight for lin in self.lins]

    def _fair_forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None, matrix: FairMatrix
    ) -> Tensor:
        weights = [ready(lin, x) for lin in self.lins]
        edge_index, edge_weight = normalized_edges(self, x, edge_index, edge_weight)
        h, out = x, functional.linear(x, weights[0].detach())
        for weight in weights[1:]:
            h = self.propagate(edge_index, x=h, edge_weight=edge_weight)
            out = out + functional.linear(h, weight.detach())
        out = attach(out, x, matrix, weights, list(range(self.K + 1)), self.node_dim)
        return out if self.bias is None else out + self.bias
