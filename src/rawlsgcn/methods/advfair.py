"""AdvFair (after Bose and Hamilton, 2019): embeddings from which degrees cannot be predicted.

Two graph convolutions embed a node, a filter removes what reveals its degree, and a linear
classifier reads the rest. A discriminator predicts deg(i) from the filtered embedding. In
turns, on the training nodes, it minimizes its own cross entropy and the model minimizes

    CE_task - λ CE_discriminator.

Degrees are numbers of neighbors; edge weights, where there are any, are those of Â.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ._ops.convolution import GraphConvolution
from ._ops.fixed_matrix import FixedMatrix, times
from ._ops.random_draws import Dropout, empty
from ._ops.receptive_field import reached_rows, restricted
from ._ops.restricted_learner import RestrictedLearner
from .base import Method, fused_adam, normalized_adjacency, take_step
from .inputs import Inputs
from .settings import Settings


def perceptron(*sizes: int) -> nn.Sequential:
    """Linear maps with Leaky ReLU between them."""
    maps = [empty(nn.Linear, a, b) for a, b in pairwise(sizes)]
    return nn.Sequential(maps[0], *chain(*((nn.LeakyReLU(), each) for each in maps[1:])))


class AdvFairNetwork(nn.Module):
    """Embedding, filter and classifier, and the discriminator of ``groups`` degrees."""

    def __init__(
        self, sizes: list[int], dropout: float, random: torch.Generator, hidden: int, groups: int
    ) -> None:
        super().__init__()
        pairs = pairwise([*sizes[:-1], hidden])
        self.convolutions = nn.ModuleList(GraphConvolution(a, b) for a, b in pairs)
        self.filter = perceptron(hidden, 2 * hidden, hidden)
        self.classifier = empty(nn.Linear, hidden, sizes[-1])
        self.discriminator = perceptron(hidden, hidden, groups)
        self.dropout = Dropout(dropout, random)
        if random.device.type == "cpu":
            # Masks begin after as many numbers as torch draws for linear maps, as they always did.
            linear = [m for m in self.modules() if isinstance(m, nn.Linear)]
            torch.rand(sum(p.numel() for m in linear for p in m.parameters()), generator=random)

    def forward(self, matrices: list[FixedMatrix]) -> Tensor:
        """The filtered embedding of some nodes, from the layers' ``restricted`` matrices."""
        first = self.convolutions[0]
        assert isinstance(first, GraphConvolution)
        return self.later(times(matrices[0], first.weight) + first.bias, matrices[1:])

    def later(self, h: Tensor, matrices: list[FixedMatrix]) -> Tensor:
        """The filtered embedding, from the first convolution's output."""
        h = torch.relu(h)
        for layer, matrix in zip(list(self.convolutions)[1:], matrices, strict=True):
            h = torch.relu(layer(self.dropout(h), matrix))
        out: Tensor = self.filter(h)
        return out


@dataclass(frozen=True)
class AdvFairSettings(Settings):
    """``adversary`` is λ, the weight of the discriminator, which the paper does not give."""

    adversary: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(0 <= self.adversary < math.inf, "adversary", "zero or a positive number")


class AdvFairLearner(RestrictedLearner):
    """A turn of the discriminator and a turn of the model in every epoch."""

    module: AdvFairNetwork
    settings: AdvFairSettings

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, groups: int) -> None:
        network_of = partial(AdvFairNetwork, hidden=settings.hidden_channels, groups=groups)
        super().__init__(inputs, settings, seed, network_of)
        self.propagation = normalized_adjacency(inputs)
        network = self.module
        model = (network.convolutions, network.filter, network.classifier)
        self.model_optimizer, self.discriminator_optimizer = (
            fused_adam(chain(*(part.parameters() for part in parts)), settings)
            for parts in (model, (network.discriminator,))
        )

    @cached_property
    def group(self) -> Tensor:
        """The degree group of each training node; every degree of the graph has one."""
        _, group = torch.unique(self.inputs.degree, return_inverse=True)
        return torch.take(group, self.inputs.train)

    def prepare(self, nodes: Tensor) -> tuple[Tensor, list[FixedMatrix]]:
        """The layers' matrices, restricted to the rows that these nodes depend on."""
        rows = reached_rows(self.propagation.matrix, nodes, self.settings.num_layers)
        return nodes, restricted(self.propagation.matrix, rows, self.inputs.x)

    def epoch(self) -> float:
        self.module.train()
        embedding = self.module(self.training[1])
        self.discriminator_turn(embedding)
        return self.model_turn(embedding)

    def discriminator_turn(self, embedding: Tensor) -> None:
        loss = cross_entropy(self.module.discriminator(embedding.detach()), self.group)
        take_step(self.discriminator_optimizer, loss)

    def model_turn(self, embedding: Tensor) -> float:
        guess = cross_entropy(self.module.discriminator(embedding), self.group)
        task = self.module.classifier(embedding)
        loss = cross_entropy(task, self.inputs.y[self.inputs.train])
        return take_step(self.model_optimizer, loss - self.settings.adversary * guess)

    def scores(self, prepared: list[FixedMatrix]) -> Tensor:
        out: Tensor = self.module.classifier(self.module(prepared))
        return out

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Without Â X, which may have many more entries than X."""
        self.module.eval()
        first: Any = self.module.convolutions[0]
        h = self.propagation @ (self.inputs.x @ first.weight) + first.bias
        matrices = [self.propagation] * (self.settings.num_layers - 1)
        out: Tensor = self.module.classifier(self.module.later(h, matrices))
        return out


class AdvFair(Method):
    """A GCN embedding, filtered against an adversary that guesses degrees; up to 1000 epochs."""

    name = "advfair"
    title = "AdvFair"
    defaults: ClassVar[AdvFairSettings] = AdvFairSettings(epochs=1000, patience=200)

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> AdvFairLearner:
        return AdvFairLearner(inputs, settings, seed, len(torch.unique(inputs.degree)))

    def restore(
        self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]
    ) -> AdvFairLearner:
        """The discriminator has one output for each degree of the graph it was trained on."""
        learner = AdvFairLearner(inputs, settings, 0, len(state["discriminator.2.bias"]))
        learner.module.load_state_dict(state)
        return learner
