"""Learning with weights that depend on a node's degree: rows sorted by group of degrees."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..._core.sparse import csr_from_entries
from ..base import Learner, accuracy_of, fused_adam, take_step
from ..inputs import Inputs
from ..settings import Settings
from .fixed_matrix import FixedMatrix
from .random_draws import draw_uniform


@dataclass(frozen=True)
class Step:
    """One layer's rows, sorted by group.

    ``matrix`` takes the rows before (first: every node) to these, ``own`` says where each of
    these rows is among them, and ``counts`` how many of these rows each group has.
    """

    matrix: FixedMatrix
    own: Tensor
    group: Tensor
    counts: list[int]


@dataclass(frozen=True)
class Reach:
    """The rows that the scores of ``targets`` depend on, layer by layer.

    Dropping the others changes no score and no gradient.
    """

    targets: Tensor
    steps: list[Step]

    @classmethod
    def of(
        cls,
        matrix: tuple[Tensor, Tensor, Tensor],
        group: Tensor,
        groups: int,
        targets: Tensor,
        layers: int,
    ) -> Reach:
        """For a matrix as rows, columns and values; -1 as a group means none."""
        row, column, value = matrix
        everything = torch.arange(len(group), device=group.device)
        seen = torch.zeros_like(group, dtype=torch.bool)
        seen[targets] = True
        levels: list[Tensor] = []
        for _ in range(layers):
            nodes = seen.nonzero().view(-1)
            levels.insert(0, nodes[group[nodes].argsort(stable=True)])
            seen[column[seen[row]]] = True
        steps = []
        for before, nodes in itertools.pairwise([everything, *levels]):
            old, new = torch.full_like(everything, -1), torch.full_like(everything, -1)
            old[before], new[nodes] = everything[: len(before)], everything[: len(nodes)]
            kept = new[row] >= 0
            part = csr_from_entries(
                new[row[kept]], old[column[kept]], value[kept], (len(nodes), len(before))
            )
            own = group[nodes]
            counts = torch.bincount(own[own >= 0], minlength=groups).tolist()
            steps.append(Step(FixedMatrix.of(part), old[nodes], own, counts))
        return cls(levels[-1], steps)


class GroupedLearner(Learner):
    """Trains a module on the :class:`Reach` of the training nodes: no other row matters."""

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, module: nn.Module) -> None:
        self.inputs, self.settings, self.module = inputs, settings, module
        draw_uniform(module, torch.Generator().manual_seed(seed))
        module.to(inputs.device, inputs.dtype)
        self.optimizer = fused_adam(module.parameters(), settings)

    @abstractmethod
    def arguments(self, targets: Tensor) -> tuple[Any, ...]:
        """The arguments of the module for these targets; the last one is their Reach."""

    @cached_property
    def training(self) -> tuple[Any, ...]:
        return self.arguments(self.inputs.train)

    @cached_property
    def validation(self) -> tuple[Any, ...]:
        return self.arguments(self.inputs.val)

    def epoch(self) -> float:
        self.module.train()
        labels = self.inputs.y[self.training[-1].targets]
        loss = nn.functional.cross_entropy(self.module(*self.training), labels)
        return take_step(self.optimizer, loss)

    @torch.no_grad()
    def logits(self) -> Tensor:
        self.module.eval()
        arguments = self.arguments(torch.arange(self.inputs.num_nodes, device=self.inputs.device))
        out: Tensor = self.module(*arguments)
        return torch.empty_like(out).index_copy_(0, arguments[-1].targets, out)

    @torch.no_grad()
    def validation_score(self) -> float:
        self.module.eval()
        labels = self.inputs.y[self.validation[-1].targets]
        logits: Tensor = self.module(*self.validation)
        return accuracy_of(logits, labels)
