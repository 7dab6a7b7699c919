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

    Example:
        >>> import torch
        >>> from rawlsgcn.nn import FairSAGEConv
        >>> edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # a star
        >>> x = torch.randn(4, 3)
        >>> layer = FairSAGEConv(3, 2)
        >>> layer(x, edge_index).shape
        torch.Size([4, 2])
    """

    propagate_type: ClassVar = {"x": OptPairTensor}

    @staticmethod
    def refusal(layer: Any) -> str | None:
        """Return why a ``SAGEConv`` has no fair form, or None."""
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
        """Compute the layer.

        Args:
            x: Node features (nodes, inputs), or a pair of those of sources and of targets.
            edge_index: Edge indices (2, edges), or the transposed adjacency as a sparse matrix.
            size: The numbers of source and target nodes of a bipartite block.
            fair_weight: B's entries at the edges (edges,), or at the edges and on the diagonal
                (edges + targets,); by default the graph is balanced.

        Returns:
            Node features (targets, outputs).

        Raises:
            RawlsError: If the graph has no doubly stochastic form, or ``fair_weight`` is invalid.
        """
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
