"""GCNII's convolution with the fair gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from .fair_gradient import attach
from .fair_layer import FairLayer


class FairGCN2Conv(FairLayer, GCN2Conv):  # type: ignore[misc]
    r"""The GCNII convolution ``GCN2Conv`` with the fair gradient.

    .. math:: E = U \big((1-\beta) I + \beta W_1\big), \qquad
        U = (1-\alpha) \hat A X + \alpha X_0,

    .. math:: \frac{\partial J}{\partial W_1} = \beta
        \big((1-\alpha) \hat A_{DS} X + \alpha X_0\big)^\top \frac{\partial J}{\partial E},

    where every node has the weight (1-α) + α = 1. With ``shared_weights=False`` the two terms have
    a weight each: W_1 learns from the first by the fair gradient, and W_2, in whose gradient every
    node has the weight one already, by the ordinary one. The node-wise formulation of U is

    .. math:: u_i = (1-\alpha) \sum_{j \in N(i) \cup \{i\}}
        \frac{a_{ij}}{\sqrt{\tilde d_i \tilde d_j}}\, x_j + \alpha\, x_{0,i}.

    Args:
        channels: Size of the input and output features.
        alpha: The share α of the initial features.
        theta: θ of β = log(θ / layer + 1); without it β = 1.
        layer: The number of this layer in the network, from 1.
        shared_weights: Whether both terms share W_1.
        cached: Whether to compute Â and Â_DS once and reuse them, for one fixed graph.
        normalize: Whether to apply the symmetric normalization.
        add_self_loops: Whether to add self-loops.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean.

    Shapes:
        - **input:** node features :math:`(|V|, F)`, initial node features :math:`(|V|, F)`, edge
          indices :math:`(2, |E|)` or sparse matrix, edge weights :math:`(|E|)` *(optional)*, fair
          weights :math:`(|E|)` or :math:`(|E| + |V|)` *(optional)*
        - **output:** node features :math:`(|V|, F)`

    Example:
        >>> import torch
        >>> from rawlsgcn.nn import FairGCN2Conv
        >>> edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # a star
        >>> x = torch.randn(4, 3)
        >>> layer = FairGCN2Conv(3, alpha=0.1)
        >>> layer(x, x, edge_index).shape
        torch.Size([4, 3])
    """

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        x_0: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, self.weight1):
            plain: Tensor = GCN2Conv.forward(self, x, x_0, edge_index, edge_weight)
            return plain
        nodes, weight = x.shape[self.node_dim], self.weight1
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weight.dtype)
        edge_index, edge_weight = self._normalized(x, edge_index, edge_weight)
        h = self.propagate(edge_index, x=x, edge_weight=edge_weight) * (1 - self.alpha)
        initial = self.alpha * x_0[: h.size(0)]
        first = h + initial if self.weight2 is None else h
        out = torch.addmm(first, first, weight.detach(), beta=1 - self.beta, alpha=self.beta)
        # U is linear in X and X_0: the weight learns from each by the matrix that acts on it.
        share = self.beta * (1 - self.alpha)
        out = attach(out, x, matrix, [share * weight.t()], [1], self.node_dim)
        if self.weight2 is None:
            return attach(out, initial, matrix, [self.beta * weight.t()], [0], self.node_dim)
        second = torch.addmm(initial, initial, self.weight2, beta=1 - self.beta, alpha=self.beta)
        return out + second

    def _learning(self) -> list[tuple[Any, int]]:
        return []

    def _normalized(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None
    ) -> tuple[Any, Tensor | None]:
        """Return the edges and weights of Â as the parent makes and caches them."""
        if not self.normalize:
            return edge_index, edge_weight
        tensor = isinstance(edge_index, Tensor)
        cache = "_cached_edge_index" if tensor else "_cached_adj_t"
        edges = getattr(self, cache)
        if edges is None:
            options = x.size(self.node_dim), False, self.add_self_loops, self.flow, x.dtype
            edges = gcn_norm(edge_index, edge_weight, *options)
            if self.cached:
                setattr(self, cache, edges)
        return edges if tensor else (edges, None)
