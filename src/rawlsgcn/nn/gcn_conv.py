"""The graph convolution of Kipf and Welling with the fair gradient (RawlsGCN-Grad)."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import GCNConv
from torch_geometric.typing import OptTensor

from .balanced_weights import Loops
from .fair_gradient import attach
from .fair_layer import FairLayer, ready
from .gcn_normalization import cached_normalized_edges


class FairGCNConv(FairLayer, GCNConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`GCNConv`, whose weight learns from every node alike.

    The forward pass is that of :class:`GCNConv`,

    .. math:: E = \hat A X W^\top + b, \qquad \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}.

    Backward, everything is as usual except the weight's gradient, the paper's Equation 9:

    .. math:: \frac{\partial J}{\partial W} =
        \Big(\frac{\partial J}{\partial E}\Big)^\top \hat A_{DS} X,

    with the doubly stochastic form :math:`\hat A_{DS}` of :math:`\hat A`. Arguments, attributes
    and state dict are those of :class:`GCNConv`.

    Shapes:
        - **input:** node features (nodes, inputs), edge indices (2, edges) or sparse matrix,
          edge weights (edges) *(optional)*, fair weights (edges) or (edges + nodes) *(optional)*
        - **output:** node features (nodes, outputs)
    """

    propagate_type: ClassVar = {"x": Tensor, "edge_weight": OptTensor}

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if isinstance(x, tuple | list) or not self._learns(edge_index, self.lin.weight):
            out: Tensor = super().forward(x, edge_index, edge_weight)
            return out
        weight, nodes = ready(self.lin, x), x.shape[self.node_dim]
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weight.dtype)
        edge_index, edge_weight = cached_normalized_edges(
            self, x, edge_index, edge_weight, self.improved
        )
        out = self.propagate(
            edge_index, x=functional.linear(x, weight.detach()), edge_weight=edge_weight
        )
        out = attach(out, x, matrix, [weight], [1], self.node_dim)
        return out if self.bias is None else out + self.bias

    def _loops(self) -> Loops:
        return super()._loops()._replace(weight=2.0 if self.improved else 1.0)
