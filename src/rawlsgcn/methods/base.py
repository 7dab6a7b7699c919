"""What a method is: a name, its default settings, and a learner it makes from a graph."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..balancing import propagation_matrix
from ._ops.convolution import GraphConvolutionalNetwork
from ._ops.fixed_matrix import FixedMatrix
from .inputs import Inputs
from .settings import Settings


class Learner(ABC):
    """One run of a method: it learns an epoch at a time and can be asked what it thinks.

    ``module`` holds everything that is learnt: its parameters are counted and its state is kept.
    """

    inputs: Inputs
    module: nn.Module

    @abstractmethod
    def epoch(self) -> float:
        """Learn for one epoch and return the training loss."""

    @abstractmethod
    def logits(self) -> Tensor:
        """The class scores of every node, in evaluation mode."""

    def validation_score(self) -> float:
        """What early stopping watches, higher is better: the accuracy on the validation nodes."""
        nodes = self.inputs.val
        return accuracy_of(self.logits()[nodes], self.inputs.y[nodes])


class Method(ABC):
    """A method is found by its ``name``; ``title`` is what tables call it."""

    name: ClassVar[str]
    title: ClassVar[str]
    defaults: ClassVar[Settings]
    # The settings that the paper searched for this method, each with the values it tried.
    grid: ClassVar[Mapping[str, Sequence[float]]] = {
        "lr": (0.075, 0.05, 0.025, 0.01, 0.0075, 0.005, 0.0025)
    }

    @abstractmethod
    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        """A fresh learner; the same seed gives the same numbers."""

    def restore(self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]) -> Learner:
        """A learner with kept weights, to predict on ``inputs``, which may be another graph.

        A method whose weights depend on the graph it was trained on overrides this.
        """
        learner = self.learner(inputs, settings, seed=0)
        learner.module.load_state_dict(state)
        return learner


class Convolutional(Method):
    """The GCN family: methods that differ only in the matrices of the two passes.

    ``forward_normalization`` is the normalization of Â that features are propagated with,
    ``gradient_normalization`` the one that W's gradient is computed with (None: the forward one).
    Methods of this family are trained by the stacked engine.
    """

    @abstractmethod
    def forward_normalization(self, settings: Settings) -> str: ...

    def gradient_normalization(self, settings: Settings) -> str | None:
        return None

    @staticmethod
    def sizes(inputs: Inputs, settings: Settings) -> list[int]:
        return [
            inputs.num_features,
            *[settings.hidden_channels] * (settings.num_layers - 1),
            inputs.num_classes,
        ]

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        return ConvolutionalLearner(self, inputs, settings, seed)


class ConvolutionalLearner(Learner):
    """Plain full-graph training of the GCN family, as the paper writes it."""

    def __init__(
        self, method: Convolutional, inputs: Inputs, settings: Settings, seed: int
    ) -> None:
        self.inputs = inputs
        self.x = FixedMatrix.of(inputs.x)
        self.propagation = fixed_propagation(inputs, method.forward_normalization(settings))
        self.gradient_normalization = method.gradient_normalization(settings)
        random = torch.Generator(inputs.device).manual_seed(seed)
        sizes = method.sizes(inputs, settings)
        self.module = GraphConvolutionalNetwork(sizes, settings.dropout, random)
        self.module.reset_parameters(torch.Generator().manual_seed(seed))
        self.module.to(inputs.device, inputs.dtype)
        self.optimizer = torch.optim.Adam(
            self.module.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )

    @cached_property
    def fair(self) -> FixedMatrix | None:
        """Made at the first epoch: predictions do not need the gradient's matrix."""
        return (
            None
            if self.gradient_normalization is None
            else fixed_propagation(self.inputs, self.gradient_normalization)
        )

    def epoch(self) -> float:
        self.module.train()
        self.optimizer.zero_grad()
        logits = self.module(self.x, self.propagation, self.fair)[self.inputs.train]
        loss = nn.functional.cross_entropy(logits, self.inputs.y[self.inputs.train])
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def logits(self) -> Tensor:
        self.module.eval()
        out: Tensor = self.module(self.x, self.propagation)
        return out


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether every number of the tensors is finite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def accuracy_of(logits: Tensor, y: Tensor) -> float:
    """The share of rows whose largest score is that of ``y``; NaN if a score is not finite.

    The largest of a row with NaN in it means nothing: torch names the first class.
    """
    if not all_finite([logits]):
        return math.nan
    return (logits.argmax(1) == y).float().mean().item()


def fixed_propagation(inputs: Inputs, form: str) -> FixedMatrix:
    """A normalization of the graph's Â, ready for products in both passes."""
    matrix = propagation_matrix(
        inputs.edge_index, inputs.edge_weight, inputs.num_nodes, form, dtype=inputs.dtype
    )
    return FixedMatrix.of(matrix, symmetric=form not in ("row", "column"))
