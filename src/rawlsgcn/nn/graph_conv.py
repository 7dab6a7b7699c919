"""The convolution of Morris et al. (k-GNN) with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import GraphConv
from torch_geometric.typing import OptPairTensor, OptTensor, Size
from torch_geometric.utils import is_sparse

from .._core.argument_checks import require_edges
from .fair_gradient import attach
from .fair_layer import FairLayer, ready


class FairGraphConv(FairLayer, GraphConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`GraphConv`, whose neighbour weight learns from every node alike.

    .. math:: E = A X W_{rel}^\top + b + X W_{root}^\top, \qquad
        \frac{\partial J}{\partial W_{rel}} = \Big(\frac{\partial J}{\partial E}\Big)^\top B X,

    with A the (weighted) adjacency matrix, and B the doubly stochastic form of A + I: A itself may
    have none. The gradients of W_root and b count every node once already.
    """

    propagate_type: ClassVar = {"x": OptPairTensor, "edge_weight": OptTensor}

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        size: Size = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, self.lin_rel.weight):
            plain: Tensor = super().forward(x, edge_index, edge_weight, size)
            return plain
        if not is_sparse(edge_index):
            require_edges(edge_index, edge_weight, type(self).__name__)
        x, root = (x, x) if isinstance(x, Tensor) else x
        weight = ready(self.lin_rel, x)
        out = self.propagate(edge_index, x=(x, root), edge_weight=edge_weight, size=size)
        sizes = (x.shape[self.node_dim], out.shape[self.node_dim])
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, weight.dtype)
        out = functional.linear(out, weight.detach(), self.lin_rel.bias)
        out = attach(out, x, matrix, [weight], [1], self.node_dim)
        return out if root is None else out + self.lin_root(root)
