"""GraphSAGE's convolution with the fair gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import SAGEConv
from torch_geometric.typing import OptPairTensor, Size, SparseTensor

from .fair_gradient import attach
from .fair_layer import FairLayer, ready


class FairSAGEConv(FairLayer, SAGEConv):  # type: ignore[misc]
    r"""torch_geometric's :class:`SAGEConv`, whose neighbour weight learns from every node alike.

    .. math:: E = P X W_l^\top + b + X W_r^\top, \qquad
        \frac{\partial J}{\partial W_l} = \Big(\frac{\partial J}{\partial E}\Big)^\top B X,

    with P = D⁻¹ A for the mean (P = A for the sum) and B the doubly stochastic form of A + I: A
    itself may have none. The gradient of W_r counts every node once already and is the usual one,
    as is that of b.
    """

    propagate_type: ClassVar = {"x": OptPairTensor}

    @staticmethod
    def refusal(layer: Any) -> str | None:
        if layer.project:
            return "with project=True it has a weight before the aggregation; use project=False"
        return FairLayer.refusal(layer)

    def forward(
        self,
        x: Any,
        edge_index: Any,
        size: Size = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        if not self._learns(edge_index, self.lin_l.weight):
            plain: Tensor = super().forward(x, edge_index, size)
            return plain
        x, root = (x, x) if isinstance(x, Tensor) else x
        weight = ready(self.lin_l, x)
        out = self.propagate(edge_index, x=(x, root), size=size)
        sizes = (x.shape[self.node_dim], out.shape[self.node_dim])
        if isinstance(edge_index, SparseTensor):
            edge_index = edge_index.set_value(None, layout=None)  # as the parent's aggregation
        matrix = self._fair_matrix(edge_index, None, fair_weight, sizes, weight.dtype)
        out = functional.linear(out, weight.detach(), self.lin_l.bias)
        out = attach(out, x, matrix, [weight], [1], self.node_dim)
        if self.root_weight and root is not None:
            out = out + self.lin_r(root)
        return functional.normalize(out, p=2.0, dim=-1) if self.normalize else out
