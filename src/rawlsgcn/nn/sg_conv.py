"""The simplified graph convolution with the fair gradient."""

from __future__ import annotations

from typing import Any

from torch_geometric.nn import SGConv

from .fair_layer import FairLayer


class FairSGConv(FairLayer, SGConv):  # type: ignore[misc]
    r"""The simplified graph convolution ``SGConv`` with the fair gradient.

    .. math:: E = \hat A^K X W^\top + b, \qquad
        \frac{\partial J}{\partial W} = \Big(\frac{\partial J}{\partial E}\Big)^\top
        \hat A_{DS}^K X.

    A power of a doubly stochastic matrix is doubly stochastic: every node has the weight one. The
    forward pass repeats, K times and node by node,

    .. math:: x_i \leftarrow \sum_{j \in N(i) \cup \{i\}}
        \frac{a_{ij}}{\sqrt{\tilde d_i \tilde d_j}}\, x_j.

    Args:
        in_channels: Size of the input features, or -1 to infer it from the first input.
        out_channels: Size of the output features.
        K: Number of hops.
        cached: Whether to compute Â^K X and Â_DS once and reuse them, for one fixed graph.
        add_self_loops: Whether to add self-loops.
        bias: Whether to learn an additive bias.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})`, edge indices :math:`(2, |E|)` or sparse
          matrix, edge weights :math:`(|E|)` *(optional)*, fair weights :math:`(|E|)` or
          :math:`(|E| + |V|)` *(optional)*
        - **output:** node features :math:`(|V|, F_{out})`
    """

    _aggregates_first = True

    def _learning(self) -> list[tuple[Any, int]]:
        return [(self.lin, self.K)]
