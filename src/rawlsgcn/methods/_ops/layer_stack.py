"""A network as the stacked engine trains it: the fixed matrices of its layers, and its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ...balancing import propagation_matrix
from ..inputs import Inputs
from .fixed_matrix import FixedMatrix
from .receptive_field import reached_rows, restricted


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
