"""Personalized PageRank propagation, which has no weights, with the fair gradient of its input."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import APPNP

from .fair_gradient import redirect
from .fair_layer import FairLayer


class FairAPPNP(FairLayer, APPNP):  # type: ignore[misc]
    r"""The personalized PageRank propagation ``APPNP`` with the fair gradient of its input.

    .. math:: E = \Pi(\hat A)\, Z, \qquad \Pi(M) =
        \sum_{k=0}^{K-1} \alpha (1-\alpha)^k M^k + (1-\alpha)^K M^K.

    The weights are in the layers that computed Z. In their gradient every node has the weight one
    if the gradient of Z is that of the doubly stochastic form, whose Π is doubly stochastic too:

    .. math:: \frac{\partial J}{\partial Z} = \Pi(\hat A_{DS})^\top \frac{\partial J}{\partial E}.

    Unlike in the layers with weights, this is the gradient of the input: do not use it after a
    convolution that is fair itself. Node by node the forward pass repeats, K times,

    .. math:: e_i \leftarrow (1-\alpha) \sum_{j \in N(i) \cup \{i\}}
        \frac{a_{ij}}{\sqrt{\tilde d_i \tilde d_j}}\, e_j + \alpha\, z_i.

    Args:
        K: Number of iterations.
        alpha: Teleport probability α.
        dropout: Dropout probability of the edges, in the forward pass only.
        cached: Whether to compute Â and Â_DS once and reuse them, for one fixed graph.
        add_self_loops: Whether to add self-loops.
        normalize: Whether to apply the symmetric normalization.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F)`, edge indices :math:`(2, |E|)` or sparse matrix,
          edge weights :math:`(|E|)` *(optional)*, fair weights :math:`(|E|)` or
          :math:`(|E| + |V|)` *(optional)*
        - **output:** node features :math:`(|V|, F)`

    Example:
        >>> import torch
        >>> from rawlsgcn.nn import FairAPPNP
        >>> edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # a star
        >>> x = torch.randn(4, 3)
        >>> layer = FairAPPNP(K=2, alpha=0.1)
        >>> layer(x, edge_index).shape
        torch.Size([4, 3])
    """

    def _learning(self) -> list[tuple[Any, int]]:
        return []

    def _compute(self, x: Any, adjacency: Any, fair_weight: Tensor | None, **graph: Any) -> Tensor:
        if not isinstance(x, Tensor) or not self._learns(adjacency, x):
            plain: Tensor = APPNP.forward(self, x, adjacency, **graph)
            return plain
        sizes = (x.shape[self.node_dim],) * 2
        matrix = self._fair_matrix(adjacency, graph["edge_weight"], fair_weight, sizes, x.dtype)
        out: Tensor = APPNP.forward(self, x.detach(), adjacency, **graph)
        coefficients = [self.alpha * (1 - self.alpha) ** k for k in range(self.K)]
        coefficients.append((1 - self.alpha) ** self.K)
        return redirect(out, x, matrix, coefficients, self.node_dim)
