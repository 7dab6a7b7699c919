"""Adam for one long vector in which every stretch may have a rate and a weight decay of its own."""

from __future__ import annotations

import torch
from torch import Tensor


class VectorAdam:
    """Adam (Kingma and Ba, 2015) as torch.optim.Adam does it, with a rate for every element.

    It keeps its step count on the device, so that a CUDA graph can replay it. On the CPU, where
    all elements of a block share their rate, torch's fused Adam is several times faster.
    """

    def __init__(self, parameters: Tensor, gradients: Tensor, lr: Tensor, decay: Tensor) -> None:
        self.parameters, self.gradients, self.lr, self.decay = parameters, gradients, lr, decay
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self.steps = torch.zeros((), device=parameters.device, dtype=torch.float64)
        self.betas, self.epsilon = (0.9, 0.999), 1e-8

    @property
    def state(self) -> list[Tensor]:
        """Everything that a step changes."""
        return [self.parameters, self.mean, self.square, self.steps]

    def step(self) -> None:
        first, second = self.betas
        self.steps += 1
        correction = (1 - first**self.steps).to(self.parameters.dtype)
        root = (1 - second**self.steps).sqrt().to(self.parameters.dtype)
        gradient = torch.addcmul(self.gradients, self.parameters, self.decay)
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scaled = self.square.sqrt().div_(root).add_(self.epsilon)
        self.parameters.addcmul_(self.mean / scaled, self.lr / correction, value=-1)
