"""Dropout on the CPU whose masks cost less than the product that they follow."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ..stacked.dropout import Dropout as Masks


class RowDropout(nn.Module):
    """Dropout with masks of a stream of its own, drawn as the stacked engine draws them.

    torch draws one random number for each entry, which takes as long as everything else of a step.

    Args:
        p: The probability with which an entry is set to zero, met to 1 part in 65,536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.reseed(0)

    def reseed(self, seed: int) -> None:
        """Draw the next masks from a new stream.

        Args:
            seed: The seed of the stream.
        """
        self.masks = Masks([seed], self.p, torch.device("cpu"))

    def forward(self, h: Tensor) -> Tensor:
        """Set entries to zero in training, and scale the others.

        Args:
            h: A matrix of shape (rows, width).

        Returns:
            A matrix of the same shape.
        """
        if not self.training or self.p == 0:
            return h
        mask = np.empty((h.shape[0], 1, h.shape[1]), dtype=np.float32)
        self.masks.draw(mask)
        return h * torch.from_numpy(mask.reshape(h.shape))
