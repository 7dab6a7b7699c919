"""The graph of Tail-GNN's two branches: whole, forged, and restricted to the rows that matter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .._core.sparse import csr_from_entries
from ._ops.fixed_matrix import FixedMatrix, propagated, times


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
    """The fixed matrices of a branch, from some rows of a layer's input to its output."""

    mix: FixedMatrix
    own: FixedMatrix
    mean: FixedMatrix
    degree: Tensor

    def view(self, h: Tensor) -> View:
        return View(times(self.mix, h), times(self.own, h), times(self.mean, h), self.degree)

    def features(self, x: Tensor) -> View:
        """The view of the network's own input, which never changes."""
        mixed, own, mean = (
            FixedMatrix.of(propagated(part.matrix, x)) for part in (self.mix, self.own, self.mean)
        )
        return View(mixed, own, mean, self.degree)


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

    def rows(self, targets: Tensor, layers: int) -> list[Tensor]:
        """For layers 1 to L, the nodes whose output in that layer the ``targets`` depend on."""
        reached = [targets]
        for _ in range(layers - 1):
            closed = self._places(reached[0]) >= 0
            closed[self.column[closed[self.row]]] = True
            reached.insert(0, closed.nonzero().view(-1))
        return reached

    def hop(self, rows: Tensor, columns: Tensor, about: Tensor) -> Hop:
        """From a layer's input at ``columns`` to its ``rows``, with translations of ``about``."""
        near, degree = self.weight, self.degree
        mean = near / degree[self.row]
        scale = 1 / (degree + (2 if self.tail else 1))
        if self.tail:
            mix = self._matrix(rows, columns, (near - mean) * scale[self.row], 2 * scale)
        else:
            mix = self._matrix(rows, columns, near * scale[self.row], scale)
        own = self._matrix(about, columns, None, torch.ones_like(degree))
        return Hop(mix, own, self._matrix(about, columns, mean, None), degree[about])

    def _matrix(
        self, rows: Tensor, columns: Tensor, near: Tensor | None, own: Tensor | None
    ) -> FixedMatrix:
        """The rows of a matrix with ``near`` on the edges and ``own`` on the diagonal."""
        at, to = self._places(rows), self._places(columns)
        parts = []
        if near is not None:
            keep = at[self.row] >= 0
            parts.append((at[self.row[keep]], to[self.column[keep]], near[keep]))
        if own is not None:
            parts.append((at[rows], to[rows], own[rows]))
        line, place, values = (torch.cat(part) for part in zip(*parts, strict=True))
        return FixedMatrix.of(csr_from_entries(line, place, values, (len(rows), len(columns))))

    def _places(self, nodes: Tensor) -> Tensor:
        place = torch.full((self.nodes,), -1, device=nodes.device)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        return place


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
