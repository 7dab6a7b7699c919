"""What a method is: a name, default settings, and a learner that it makes from a graph."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._core.errors import RawlsError, unknown_name
from ..balancing import propagation_matrix
from ._ops.fixed_matrix import FixedMatrix
from .inputs import Inputs
from .settings import RENORMALIZED, Settings, with_changes


class Learner(ABC):
    """One run of a method, which learns one epoch at a time.

    Attributes:
        inputs: The graph that it learns from.
        module: Everything that is learned: its parameters are counted and its state is saved.
    """

    inputs: Inputs
    module: nn.Module

    @abstractmethod
    def epoch(self) -> float:
        """Train for one epoch.

        Returns:
            The training loss.
        """

    @abstractmethod
    def logits(self) -> Tensor:
        """Compute the class scores of every node in evaluation mode.

        Returns:
            A tensor of shape (nodes, classes).
        """

    def validation_score(self) -> float:
        """Compute the score that early stopping watches; higher is better.

        Returns:
            The accuracy on the validation nodes, or NaN if a score is not finite.
        """
        nodes = self.inputs.val
        return accuracy_of(self.logits()[nodes], self.inputs.y[nodes])


class Method(ABC):
    """A way to train a classifier of nodes; derive from it to add one (docs/adding-a-method.md).

    Attributes:
        name: What users type, for example ``"rawlsgcn-graph"``.
        title: What tables print.
        defaults: The settings that it is trained with unless they are changed.
        normalizations: The values that its setting ``normalization`` can have.
        grid: The settings that :func:`rawlsgcn.tune` varies by default, each with its values; empty
            for the learning rates of the paper. Weight decays are searched as well.

    Example:
        >>> from rawlsgcn.methods import Settings
        >>> from rawlsgcn.methods.gcn import GCN
        >>> class LongGCN(GCN):
        ...     name, title, defaults = "long-gcn", "Long GCN", Settings(epochs=500)
        >>> LongGCN().configure({"lr": "0.05"}).lr
        0.05
    """

    name: ClassVar[str]
    title: ClassVar[str]
    defaults: ClassVar[Settings]
    normalizations: ClassVar[tuple[str, ...]] = (RENORMALIZED,)
    grid: ClassVar[Mapping[str, Sequence[float]]] = {}

    @abstractmethod
    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        """Make a run that has not learned yet.

        Args:
            inputs: The graph.
            settings: Settings of the class of ``defaults``, from :meth:`configure`.
            seed: Decides everything random: the same seed gives the same numbers.

        Returns:
            The run.
        """

    def configure(self, changes: Mapping[str, Any] | None = None) -> Settings:
        """Return the default settings with some of them changed, validated.

        Args:
            changes: New values by name; text is converted to the type of the setting.

        Returns:
            Settings of the class of ``defaults``.

        Raises:
            RawlsError: If a setting is unknown to the method, or a value is not allowed.
        """
        settings = with_changes(self.defaults, changes or {})
        if settings.normalization not in self.normalizations:
            if len(self.normalizations) == 1:
                raise RawlsError(
                    f"{self.name} has no normalization '{settings.normalization}', only its own: "
                    "leave the setting out, or use rawlsgcn-graph"
                )
            raise unknown_name("normalization", settings.normalization, self.normalizations)
        return settings

    def restore(self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]) -> Learner:
        """Make a learner with saved weights, to predict on a graph.

        A method whose weights depend on the graph it was trained on overrides this.

        Args:
            inputs: The graph to predict on, which may be another one and may have no labels.
            settings: The settings that the weights were trained with.
            state: The state of the learner's module.

        Returns:
            A learner whose :meth:`Learner.logits` are those of the saved weights.
        """
        learner = self.learner(inputs, settings, seed=0)
        learner.module.load_state_dict(state)
        return learner


@dataclass(frozen=True)
class Layer:
    """The fixed matrices of a layer E = M H W + b, restricted to the rows that reach the loss.

    Attributes:
        forward: M, or M H in the first layer; None for the identity.
        gradient: The matrix in the place of M in W's gradient, mostly M itself.
    """

    forward: FixedMatrix | None
    gradient: FixedMatrix | None

    @cached_property
    def fair(self) -> bool:
        """Whether the gradient's matrix is another one."""
        return self.forward is not self.gradient


class LayerStack(ABC):
    """A method's network on one graph, prepared once for any number of runs.

    Attributes:
        sizes: The widths from the inputs over the hidden layers to the classes.
        fixed: What is not trained but must be saved with the weights, by name.
    """

    sizes: list[int]
    fixed: Mapping[str, Tensor] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user about what was made of the graph."""
        return ()

    @property
    @abstractmethod
    def tensors(self) -> list[Tensor]:
        """What training reads in every epoch: its size decides the number of threads."""

    @property
    @abstractmethod
    def layers(self) -> list[Layer]:
        """The layers for the training nodes; the first one's matrix has its inputs multiplied."""

    @abstractmethod
    def logits(self, state: Sequence[Tensor]) -> Tensor:
        """The class scores of every node in evaluation mode.

        ``state`` has the weight and bias of each layer, in turn.
        """


class Stackable(Method):
    """Methods whose layers are E = M H W + b with fixed M: the stacked engine can train them."""

    @abstractmethod
    def stack(self, inputs: Inputs, settings: Settings) -> LayerStack:
        """Prepare the network on a graph, for any number of runs.

        Args:
            inputs: The graph.
            settings: The settings that the runs share: depth, width and what decides the matrices.

        Returns:
            The network's fixed matrices.
        """

    def label_smoothing(self, settings: Settings) -> float:
        """Return the share of a target that is spread evenly over the classes.

        Args:
            settings: The settings of a run.

        Returns:
            A number from 0 to 1, by default 0.
        """
        return 0.0


def training_loss(logits: Tensor, inputs: Inputs, label_smoothing: float = 0.0) -> Tensor:
    """The cross entropy of scores of the training nodes: their mean, or as they are weighted."""
    target, weight = inputs.y[inputs.train], inputs.train_weight
    how: dict[str, Any] = {"label_smoothing": label_smoothing}
    if weight is None:
        return nn.functional.cross_entropy(logits, target, **how)
    return (weight * nn.functional.cross_entropy(logits, target, reduction="none", **how)).sum()


def fused_adam(weights: Iterable[nn.Parameter], settings: Settings) -> torch.optim.Optimizer:
    """Adam in one sweep over some weights of a network."""
    return torch.optim.Adam(weights, settings.lr, weight_decay=settings.weight_decay, fused=True)


def take_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    """Move the optimizer's parameters against the gradient of the loss, and return the loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.item()


def layer_sizes(inputs: Inputs, settings: Settings) -> list[int]:
    """The widths from the features over the hidden layers to the classes."""
    hidden = [settings.hidden_channels] * (settings.num_layers - 1)
    return [inputs.num_features, *hidden, inputs.num_classes]


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether every number of the tensors is finite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def accuracy_of(logits: Tensor, y: Tensor) -> float:
    """Compute the share of nodes whose largest score is that of their label.

    Args:
        logits: Class scores of shape (nodes, classes).
        y: Labels of shape (nodes,).

    Returns:
        The accuracy from 0 to 1; NaN if a score is not finite, since the largest score of such a
        row means nothing.
    """
    if not all_finite([logits]):
        return math.nan
    return (logits.argmax(1) == y).float().mean().item()


def normalized_adjacency(inputs: Inputs, normalization: str = RENORMALIZED) -> FixedMatrix:
    """Compute a normalization of the graph's A + I, for products in both passes.

    Args:
        inputs: The graph.
        normalization: A kind of :func:`rawlsgcn.balancing.propagation_matrix`.

    Returns:
        The matrix of shape (nodes, nodes), with its transpose.
    """
    matrix = propagation_matrix(
        inputs.edge_index, inputs.edge_weight, inputs.num_nodes, normalization, dtype=inputs.dtype
    )
    return FixedMatrix.of(matrix, symmetric=normalization not in ("row", "column"))
