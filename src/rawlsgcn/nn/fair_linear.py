"""Linear layers whose weight gets no ordinary gradient while their convolution runs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn.dense import linear

from .fair_gradient import FairMatrix, attach


class FairLinear:
    """The part of such a layer that torch_geometric's or torch's Linear does not have."""

    #: While its convolution runs: that one's input, B, its power and the dimension of the nodes, to
    #: learn by, or nothing if the convolution attaches the gradient to its own output.
    route: tuple[()] | tuple[Tensor, FairMatrix, int, int] | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        if self.route is None:
            plain: Tensor = super().forward(inputs)  # type: ignore[misc]
            return plain
        layer: Any = self
        out = functional.linear(inputs, layer.weight.detach(), layer.bias)
        if not self.route:
            return out
        h, matrix, power, node_dim = self.route
        return attach(out, h, matrix, [layer.weight], [power], node_dim)


class FairGraphLinear(FairLinear, linear.Linear):  # type: ignore[misc]
    """torch_geometric's Linear layer."""


class FairTorchLinear(FairLinear, nn.Linear):
    """torch's Linear layer."""


PLAIN_LINEAR: dict[type, type] = {linear.Linear: FairGraphLinear, nn.Linear: FairTorchLinear}


def fair_class(kind: type) -> type:
    """Return the fair class of a Linear layer, whose class torch may have made (parametrized)."""
    return PLAIN_LINEAR.get(kind) or type(f"Fair{kind.__name__}", (FairLinear, kind), {})
