"""GCNII's convolution with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import GCN2Conv
from torch_geometric.typing import OptTensor

from .fair_gradient import attach
from .fair_layer import FairLayer
from .gcn_normalization import cached_normalized_edges


class FairGCN2Conv(FairLayer, GCN2Conv):  # type: ignore[misc]
    r"""torch_geometric's :class:`GCN2Conv`, whose weights learn from every node alike.

    .. math:: E = U \big((1-\beta) I + \beta W_1\big), \qquad
        U = (1-\alpha) \hat A X + \alpha X_0,

    .. math:: \frac{\partial J}{\partial W_1} = \beta
        \big((1-\alpha) \hat A_{DS} X + \alpha X_0\big)^\top \frac{\partial J}{\partial E},

    where every node counts (1-α) + α = 1. With ``shared_weights=False`` the two terms have a
    weight each: W_1 learns from the first, and W_2, whose nodes count once already, as usual.
    """

    propagate_type: ClassVar = {"x": Tensor, "edge_weight": OptTensor}

    def forward(
        self,
        x: Tensor,
        x_0: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, self.weight1):
            plain: Tensor = super().forward(x, x_0, edge_index, edge_weight)
            return plain
        nodes, weight = x.shape[self.node_dim], self.weight1
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weight.dtype)
        edge_index, edge_weight = cached_normalized_edges(self, x, edge_index, edge_weight)
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
