"""The graph convolution of Kipf and Welling with the fair gradient (RawlsGCN-Grad)."""

from __future__ import annotations

from torch_geometric.nn import GCNConv

from .balanced_weights import Loops
from .fair_layer import FairLayer


class FairGCNConv(FairLayer, GCNConv):  # type: ignore[misc]
    r"""The graph convolution ``GCNConv`` with the fair gradient of `RawlsGCN-Grad
    <https://arxiv.org/abs/2202.13547>`_.

    The forward pass is that of :class:`torch_geometric.nn.GCNConv`,

    .. math:: E = \hat A X W^\top + b, \qquad \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}.

    In the backward pass only the weight's gradient differs, the paper's Equation 9:

    .. math:: \frac{\partial J}{\partial W} =
        \Big(\frac{\partial J}{\partial E}\Big)^\top \hat A_{DS} X,

    with the doubly stochastic form :math:`\hat A_{DS} = \operatorname{diag}(s) (A + I)
    \operatorname{diag}(s)` of :math:`\hat A`. Its node-wise formulation is

    .. math:: \frac{\partial J}{\partial W} = \sum_i \frac{\partial J}{\partial e_i}
        \sum_{j \in N(i) \cup \{i\}} s_i\, a_{ij}\, s_j\, x_j^\top,

    in which the weights of each node sum to one. Arguments, attributes and state dict are those of
    ``GCNConv``.

    Args:
        in_channels: Size of the input features, or -1 to infer it from the first input.
        out_channels: Size of the output features.
        improved: Whether to use A + 2I.
        cached: Whether to compute Â and Â_DS once and reuse them, for one fixed graph.
        add_self_loops: Whether to add self-loops; by default as ``normalize``.
        normalize: Whether to apply the symmetric normalization.
        bias: Whether to learn an additive bias.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})`, edge indices :math:`(2, |E|)` or sparse
          matrix, edge weights :math:`(|E|)` *(optional)*, fair weights :math:`(|E|)` or
          :math:`(|E| + |V|)` *(optional)*
        - **output:** node features :math:`(|V|, F_{out})`

    Example:
        >>> import torch
        >>> from rawlsgcn.nn import FairGCNConv
        >>> edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # a star
        >>> x = torch.randn(4, 3)
        >>> layer = FairGCNConv(3, 2)
        >>> layer(x, edge_index).shape
        torch.Size([4, 2])
    """

    def _loops(self) -> Loops:
        return Loops(2.0 if self.improved else 1.0, last=super()._loops().last)
