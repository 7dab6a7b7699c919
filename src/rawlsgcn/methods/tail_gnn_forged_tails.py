"""The graph of Tail-GNN's two branches: whole, forged, and restricted to the rows that matter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .._core.sparse import csr_from_entries
from ._ops.fixed_matrix import FixedMatrix, propagated, suited, times
from ._ops.receptive_field import select_columns, select_rows


@dataclass(frozen=True)
class View:
    """The input of a layer, as some of its rows need it.

    ``mixed`` is the linear part of the branch: Σ_i / (deg(i) + 1) in the head branch and
    (Σ_i + x_i - n_i) / (deg(i) + 2) in the tail branch. ``x``, ``n`` and ``degree`` are of the
    rows whose translation is needed.
    """

    mixed: Tensor | FixedMatrix
    x: Tensor | FixedMatrix
    n: Tensor | FixedMatrix
    degree: Tensor


@dataclass(frozen=True)
class Hop:
    """The fixed matrices of a branch, from some rows of a layer's input to its output.

    ``own`` says where the rows to translate are in the input.
    """

    mix: FixedMatrix
    own: Tensor
    mean: FixedMatrix
    degree: Tensor

    def view(self, h: Tensor) -> View:
        mixed, own = times(self.mix, h), torch.index_select(h, 0, self.own)
        return View(mixed, own, times(self.mean, h), self.degree)

    def features(self, x: Tensor) -> View:
        """The view of the network's own input, which never changes."""
        own = select_rows(x, self.own)
        own = own if own.layout == torch.strided else suited(own)
        parts = (propagated(self.mix.matrix, x), own, propagated(self.mean.matrix, x))
        mixed, own_rows, mean = (FixedMatrix.of(part) for part in parts)
        return View(mixed, own_rows, mean, self.degree)


@dataclass(frozen=True)
class Plan:
    """The rows that a branch needs for the class scores of some nodes."""

    first: Iterable[View]
    hops: list[Hop]
    tail: bool


@dataclass(frozen=True)
class Branch:
    """A graph as one branch reads it: row i lists N(i); a forged graph need not be symmetric."""

    row: Tensor
    column: Tensor
    weight: Tensor
    nodes: int
    tail: bool

    @cached_property
    def degree(self) -> Tensor:
        return self.weight.new_zeros(self.nodes).index_add_(0, self.row, self.weight)

    @cached_property
    def mean(self) -> Tensor:
        """The matrix of the mean over the neighbors."""
        value = self.weight / self.degree[self.row]
        return csr_from_entries(self.row, self.column, value, (self.nodes, self.nodes))

    @cached_property
    def mix(self) -> Tensor:
        """The matrix of the linear part, see :class:`View`."""
        own = 1 / (self.degree + (2 if self.tail else 1))
        near = self.weight * own[self.row]
        if self.tail:
            near = (self.weight - self.weight / self.degree[self.row]) * own[self.row]
            own = 2 * own
        diagonal = torch.arange(self.nodes, device=own.device)
        row, column = (torch.cat([ends, diagonal]) for ends in (self.row, self.column))
        return csr_from_entries(row, column, torch.cat([near, own]), (self.nodes, self.nodes))

    def hop(self, rows: Tensor, columns: Tensor, about: Tensor) -> Hop:
        """From a layer's input at ``columns`` to its ``rows``, with translations of ``about``."""
        mix, mean = (
            FixedMatrix.of(select_columns(select_rows(matrix, nodes), columns))
            for matrix, nodes in ((self.mix, rows), (self.mean, about))
        )
        return Hop(mix, torch.searchsorted(columns, about), mean, self.degree[about])


def forged(branch: Branch, train: Tensor, k: int, generator: torch.Generator) -> Branch:
    """The forged tail graph: training nodes of degree ≥ k keep 1 to k random neighbors.

    Only their own rows lose entries; other nodes still see them. Drawn on the CPU, so that a seed
    means the same on every device.
    """
    row, heads = branch.row.cpu(), train.cpu()
    count = torch.bincount(row, minlength=branch.nodes)
    heads, kept = heads[count[heads] >= k], count.clone()
    kept[heads] = torch.randint(1, k + 1, (len(heads),), generator=generator)
    shuffled = torch.randperm(len(row), generator=generator)
    shuffled = shuffled[torch.argsort(row[shuffled], stable=True)]
    rank = torch.empty_like(row)
    rank[shuffled] = torch.arange(len(row)) - (count.cumsum(0) - count)[row[shuffled]]
    keep = (rank < kept[row]).to(branch.row.device)
    return Branch(branch.row[keep], branch.column[keep], branch.weight[keep], branch.nodes, True)
