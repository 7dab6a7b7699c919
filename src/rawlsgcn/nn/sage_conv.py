"""GraphSAGE's convolution with the fair gradient."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import SAGEConv
from torch_geometric.typing import Size

from .fair_layer import FairLayer


class FairSAGEConv(FairLayer, SAGEConv):  # type: ignore[misc]
    r"""The GraphSAGE convolution ``SAGEConv`` with the fair gradient of the neighbors' weight.

    .. math:: E = P X W_l^\top + b + X W_r^\top, \qquad
        \frac{\partial J}{\partial W_l} = \Big(\frac{\partial J}{\partial E}\Big)^\top B X,

    with P = D⁻¹ A for the mean (P = A for the sum) and B the doubly stochastic form of A + I: A
    itself may have none. In the ordinary gradients of W_r and b every node has the weight one
    already. The node-wise formulation of the forward pass with the mean is

    .. math:: e_i = W_l\, \operatorname{mean}_{j \in N(i)} x_j + b + W_r x_i.

    Args:
        in_channels: Size of the input features, or a pair of those of sources and targets.
        out_channels: Size of the output features.
        aggr: ``"mean"`` or ``"sum"``.
        normalize: Whether to divide each output by its Euclidean norm.
        root_weight: Whether to add W_r x_i.
        project: Must be false: it would put a weight before the aggregation.
        bias: Whether to learn an additive bias.
        **kwargs: Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Raises:
        RawlsError: If ``aggr`` is not the sum or the mean, or ``project`` is true.

    Shapes:
        - **input:** node features :math:`(|V|, F_{in})` or a pair of those of sources and targets,
          edge indices :math:`(2, |E|)` or sparse matrix, fair weights
          :math:`(|E|)` or :math:`(|E| + |V_t|)` *(optional)*
        - **output:** node features :math:`(|V_t|, F_{out})`
    """

    _aggregates_first = _bipartite = True

    @staticmethod
    def refusal(layer: Any) -> str | None:
        """Return why a ``SAGEConv`` has no fair form, or None."""
        if layer.project:
            return "with project=True it has a weight before the aggregation; use project=False"
        return FairLayer.refusal(layer)

    def forward(
        self, x: Any, edge_index: Any, size: Size = None, fair_weight: Tensor | None = None
    ) -> Tensor:
        return self._compute(x, edge_index, fair_weight, size=size)

    def _learning(self) -> list[tuple[Any, int]]:
        return [(self.lin_l, 1)]
