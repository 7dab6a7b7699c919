"""Learning on the rows that some nodes depend on: the others change no score and no gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Learner, accuracy_of, fused_adam, layer_sizes, take_step
from ..inputs import Inputs
from ..settings import Settings
from .random_draws import Dropout, draw_uniform


class LayeredNetwork(nn.Module):
    """Layers of some kind, for all pairs of neighboring sizes, and the dropout between them."""

    def __init__(
        self,
        kind: Callable[[int, int], nn.Module],
        sizes: list[int],
        dropout: float,
        random: torch.Generator,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(kind(a, b) for a, b in pairwise(sizes))
        self.dropout = Dropout(dropout, random)


# Makes a network of its sizes, the probability of dropout and the generator of the masks.
NetworkOf = Callable[[list[int], float, torch.Generator], nn.Module]


class RestrictedLearner(Learner):
    """A run whose network is given only what :meth:`prepare` computes for the nodes in question."""

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, network: NetworkOf) -> None:
        self.inputs, self.settings = inputs, settings
        self.generator = torch.Generator().manual_seed(seed)
        random = torch.Generator(inputs.device).manual_seed(seed)
        self.module = network(layer_sizes(inputs, settings), settings.dropout, random)
        draw_uniform(self.module, self.generator)
        self.module.to(inputs.device, inputs.dtype)

    @abstractmethod
    def prepare(self, nodes: Tensor) -> tuple[Tensor, Any]:
        """The nodes in the order of their scores, and what :meth:`scores` needs for them."""

    @abstractmethod
    def scores(self, prepared: Any) -> Tensor:
        """The class scores of prepared nodes."""

    @cached_property
    def training(self) -> tuple[Tensor, Any]:
        return self.prepare(self.inputs.train)

    @cached_property
    def validation(self) -> tuple[Tensor, Any]:
        return self.prepare(self.inputs.val)

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        return fused_adam(self.module.parameters(), self.settings)

    def epoch(self) -> float:
        self.module.train()
        nodes, prepared = self.training
        loss = nn.functional.cross_entropy(self.scores(prepared), self.inputs.y[nodes])
        return take_step(self.optimizer, loss)

    @torch.no_grad()
    def logits(self) -> Tensor:
        self.module.eval()
        everything = torch.arange(self.inputs.num_nodes, device=self.inputs.device)
        nodes, prepared = self.prepare(everything)
        scores = self.scores(prepared)
        return torch.empty_like(scores).index_copy_(0, nodes, scores)

    @torch.no_grad()
    def validation_score(self) -> float:
        self.module.eval()
        nodes, prepared = self.validation
        return accuracy_of(self.scores(prepared), self.inputs.y[nodes])
