"""Adam (Kingma and Ba, 2015) for one long vector, once for the CPU and once for CUDA graphs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim.adam import adam


class FusedAdam:
    """torch's Adam in one sweep over the vector, all of whose elements share rate and decay.

    The optimizer class around it takes longer than the sweep itself.
    """

    def __init__(self, parameters: Tensor, gradients: Tensor, lr: float, decay: float) -> None:
        self.parameters, self.gradients, self.lr, self.decay = parameters, gradients, lr, decay
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        # In float32 on the parameters' device, whatever torch's defaults are: counts must be exact.
        self.steps = torch.zeros((), dtype=torch.float32, device=parameters.device)

    def step(self) -> None:
        adam(
            [self.parameters],
            [self.gradients],
            [self.mean],
            [self.square],
            [],
            [self.steps],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=self.decay,
            eps=1e-8,
            maximize=False,
        )


class VectorAdam:
    """The same with a rate and a decay for every element; slower than :class:`FusedAdam` on a CPU.

    It keeps its step count on the device, so that a CUDA graph can replay it.
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
