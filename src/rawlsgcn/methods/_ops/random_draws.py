"""What a run draws from generators of its own: initial weights and dropout.

The caller's random state does not change. Weights are drawn on the CPU, so that a seed means the
same on any device.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def draw_uniform(module: nn.Module, generator: torch.Generator | None) -> None:
    """Every parameter uniform in ±1/√(d_out); d_out is its last dimension, but for linear maps."""
    for part in module.modules():
        for parameter in part.parameters(recurse=False):
            outputs = part.out_features if isinstance(part, nn.Linear) else parameter.shape[-1]
            bound = 1 / math.sqrt(outputs)
            draw = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
            parameter.data.copy_(draw)


def empty(kind: type[M], *sizes: int) -> M:
    """A module of torch whose weights are not drawn yet: torch would use the global generator."""
    module: M = torch.nn.utils.skip_init(kind, *sizes)  # type: ignore[no-untyped-call]
    return module


class Dropout(nn.Module):
    """``torch.nn.Dropout`` that draws its masks from ``generator`` (None: from torch's global one).

    A generator seeded with s gives the masks that torch draws after ``torch.manual_seed(s)``. All
    dropouts of a network share one.

    Args:
        p: The probability with which an entry is set to zero.
        generator: The generator, on the device of the values.
    """

    def __init__(self, p: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.p, self.generator = p, generator

    def forward(self, h: Tensor) -> Tensor:
        """Set entries to zero in training, and scale the others by 1 / (1 - p).

        Args:
            h: Any tensor.

        Returns:
            A tensor of the same shape.
        """
        if self.generator is None or not self.training or self.p == 0:
            return nn.functional.dropout(h, self.p, self.training)
        if h.device.type == "cuda":
            return self._on_gpu(h, self.generator)
        kept = 1 - self.p
        return h * torch.empty_like(h).bernoulli_(kept, generator=self.generator).div_(kept)

    def _on_gpu(self, h: Tensor, own: torch.Generator) -> Tensor:
        """torch's fused dropout takes no generator: the device's has our state in the meantime."""
        lent = torch.cuda.default_generators[h.device.index]
        before = lent.get_state()
        lent.set_state(own.get_state())
        try:
            return nn.functional.dropout(h, self.p)
        finally:
            own.set_state(lent.get_state())
            lent.set_state(before)
