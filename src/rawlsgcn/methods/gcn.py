"""GCN (Kipf and Welling, 2017), the network that the paper makes fair, and its family."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from ..balancing import propagation_matrix
from ._ops.convolution import GraphConvolutionalNetwork
from ._ops.fixed_matrix import FixedMatrix
from ._ops.receptive_field import reached_rows, restricted
from .base import (
    Layer,
    LayerStack,
    Learner,
    Stackable,
    layer_sizes,
    normalized_adjacency,
    take_step,
    training_loss,
)
from .inputs import Inputs
from .settings import Settings


class Convolutional(Stackable):
    """The GCN family: methods that differ only in the matrices of the forward and backward pass.

    Methods of this family need no learner of their own, and the stacked engine and the sampled
    trainer can train them.
    """

    def stack(self, inputs: Inputs, settings: Settings) -> LayerStack:
        forward = self.forward_normalization(settings)
        gradient = self.gradient_normalization(settings)
        return ConvolutionalStack(inputs, layer_sizes(inputs, settings), forward, gradient)

    def forward_normalization(self, settings: Settings) -> str:
        """Return the normalization of A + I that features are propagated with.

        Args:
            settings: The settings of a run.

        Returns:
            A kind of :func:`rawlsgcn.balancing.propagation_matrix`, by default the setting.
        """
        return settings.normalization

    def gradient_normalization(self, settings: Settings) -> str | None:
        """Return the normalization that W's gradient is computed with.

        Args:
            settings: The settings of a run.

        Returns:
            A kind of :func:`rawlsgcn.balancing.propagation_matrix`, or None for the forward one.
        """
        return None

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        return ConvolutionalLearner(self, inputs, settings, seed)


class ConvolutionalStack(LayerStack):
    """The GCN family: every layer propagates by one matrix."""

    def __init__(
        self, inputs: Inputs, sizes: list[int], forward: str, gradient: str | None = None
    ) -> None:
        self.inputs, self.sizes = inputs, sizes
        self.matrices = [self._matrix(kind) for kind in (forward, gradient) if kind is not None]

    def _matrix(self, kind: str) -> Tensor:
        i = self.inputs
        return propagation_matrix(i.edge_index, i.edge_weight, i.num_nodes, kind, dtype=i.dtype)

    @property
    def tensors(self) -> list[Tensor]:
        return [self.inputs.x, self.inputs.edge_index]

    @cached_property
    def layers(self) -> list[Layer]:
        rows = reached_rows(self.matrices[0], self.inputs.train, len(self.sizes) - 1)
        each = [restricted(matrix, rows, self.inputs.x) for matrix in self.matrices]
        return [Layer(*pair) for pair in zip(each[0], each[-1], strict=True)]

    @torch.no_grad()
    def logits(self, state: Sequence[Tensor]) -> Tensor:
        h = self.inputs.x
        for index, (weight, bias) in enumerate(zip(state[::2], state[1::2], strict=True)):
            h = self.matrices[0] @ ((h.relu() if index else h) @ weight) + bias
        return h


class BackboneLearner(Learner):
    """A run of the paper's backbone, on whatever inputs, trained by Adam."""

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, sizes: list[int]) -> None:
        self.inputs, self.settings = inputs, settings
        random = torch.Generator(inputs.device).manual_seed(seed)
        self.module = GraphConvolutionalNetwork(sizes, settings.dropout, random)
        self.module.reset_parameters(torch.Generator().manual_seed(seed))
        self.module.to(inputs.device, inputs.dtype)

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        """Adam, made at the first epoch: predictions do not need it."""
        s = self.settings
        return torch.optim.Adam(self.module.parameters(), lr=s.lr, weight_decay=s.weight_decay)


class ConvolutionalLearner(BackboneLearner):
    """Full-graph training of the GCN family, as the paper writes it."""

    def __init__(
        self, method: Convolutional, inputs: Inputs, settings: Settings, seed: int
    ) -> None:
        super().__init__(inputs, settings, seed, layer_sizes(inputs, settings))
        self.x = FixedMatrix.of(inputs.x)
        self.propagation = normalized_adjacency(inputs, method.forward_normalization(settings))
        self.gradient_normalization = method.gradient_normalization(settings)

    @cached_property
    def fair(self) -> FixedMatrix | None:
        """The gradient's matrix, made at the first epoch: predictions do not need it."""
        kind = self.gradient_normalization
        return None if kind is None else normalized_adjacency(self.inputs, kind)

    def epoch(self) -> float:
        self.module.train()
        logits = self.module(self.x, self.propagation, self.fair)[self.inputs.train]
        return take_step(self.optimizer, self.loss(logits))

    def loss(self, logits: Tensor) -> Tensor:
        """The loss, from the scores of the training nodes."""
        return training_loss(logits, self.inputs)

    @torch.no_grad()
    def logits(self) -> Tensor:
        self.module.eval()
        out: Tensor = self.module(self.x, self.propagation)
        return out


class GCN(Convolutional):
    """H ← σ(Â H W) with Â = D̃^(-1/2) (A + I) D̃^(-1/2); 200 epochs at 0.01."""

    name = "gcn"
    title = "GCN"
    defaults: ClassVar[Settings] = Settings(lr=0.01, epochs=200)
