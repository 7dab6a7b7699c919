"""The simplified graph convolution with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import SGConv
from torch_geometric.typing import OptTensor

from .fair_gradient import attach
from .fair_layer import FairLayer, ready
from .gcn_normalization import normalized_edges


class FairSGConv(FairLayer, SGConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`SGConv`, whose weight learns from every node alike.

    .. math:: E = \hat A^K X W^\top + b, \qquad
        \frac{\partial J}{\partial W} = \Big(\frac{\partial J}{\partial E}\Big)^\top
        \hat A_{DS}^K X.

    A power of a doubly stochastic matrix is doubly stochastic: every node counts once.
    """

    propagate_type: ClassVar = {"x": Tensor, "edge_weight": OptTensor}
    _cached_x: Tensor | None

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, self.lin.weight):
            plain: Tensor = super().forward(x, edge_index, edge_weight)
            return plain
        weight, nodes = ready(self.lin, x), x.shape[self.node_dim]
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weight.dtype)
        h = self._propagated(x, edge_index, edge_weight)
        out = functional.linear(h, weight.detach(), self.lin.bias)
        return attach(out, x, matrix, [weight], [self.K], self.node_dim)

    def _propagated(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None) -> Tensor:
        if self._cached_x is not None:
            return self._cached_x.detach()
        edge_index, edge_weight = normalized_edges(
            self, x, edge_index, edge_weight, add_self_loops=self.add_self_loops
        )
        for _ in range(self.K):
            x = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        if self.cached:
            self._cached_x = x
        return x
