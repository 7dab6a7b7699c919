"""The topology-adaptive convolution with the fair gradient."""

from __future__ import annotations

from typing import Any

from torch_geometric.nn import TAGConv

from .fair_layer import FairLayer


class FairTAGConv(FairLayer, TAGConv):  # type: ignore[misc]
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

    def _learning(self) -> list[tuple[Any, int]]:
        return [(linear, power) for power, linear in enumerate(self.lins)]
