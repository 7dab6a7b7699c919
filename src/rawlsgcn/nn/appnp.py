"""Personalised PageRank propagation, which has no weights, with the fair gradient before it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import APPNP

from .fair_gradient import redirect
from .fair_layer import FairLayer


class FairAPPNP(FairLayer, APPNP):  # type: ignore[misc]
    r"""torch_geometric's :class:`APPNP`, before which every node counts alike.

    .. math:: E = \Pi(\hat A)\, Z, \qquad \Pi(M) =
        \sum_{k=0}^{K-1} \alpha (1-\alpha)^k M^k + (1-\alpha)^K M^K.

    The weights sit in the layers that made Z. They learn from every node alike if the gradient
    that reaches them is that of the doubly stochastic form, whose Π is doubly stochastic too:

    .. math:: \frac{\partial J}{\partial Z} = \Pi(\hat A_{DS})^\top \frac{\partial J}{\partial E}.

    Unlike in the layers with weights, this *is* the gradient of the input: do not put it after a
    convolution that is fair by itself. ``dropout`` of the edges acts on the forward pass only.
    """

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        fair_weight: Tensor | None = None,
    ) -> Tensor:
        out: Tensor = super().forward(x.detach(), edge_index, edge_weight)
        if not self._learns(edge_index, x):
            return out
        nodes = x.shape[self.node_dim]
        sizes = (nodes, nodes)
        matrix = self._fair_matrix(edge_index, edge_weight, fair_weight, sizes, x.dtype)
        coefficients = [self.alpha * (1 - self.alpha) ** k for k in range(self.K)]
        coefficients.append((1 - self.alpha) ** self.K)
        return redirect(out, x, matrix, coefficients, self.node_dim)
