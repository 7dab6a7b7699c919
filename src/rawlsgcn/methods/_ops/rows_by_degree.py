"""The rows that nodes depend on, sorted by group, for weights that depend on the degree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._core.sparse import csr_entries, csr_from_entries
from .fixed_matrix import FixedMatrix
from .receptive_field import reached_rows, select_rows


@dataclass(frozen=True)
class Step:
    """One layer's rows, sorted by group; those of the last layer are the targets.

    ``nodes`` are the rows, ``matrix`` takes the rows before (first: every node) to them, ``own``
    says where each is among the rows before, and ``counts`` how many each group has.
    """

    nodes: Tensor
    matrix: FixedMatrix
    own: Tensor
    group: Tensor
    counts: list[int]


def grouped_steps(
    matrix: Tensor, group: Tensor, groups: int, targets: Tensor, layers: int
) -> list[Step]:
    """The layers' rows that the scores of ``targets`` depend on; -1 as a group means none."""
    before = torch.arange(len(group), device=group.device)
    steps = []
    for rows in reached_rows(matrix, targets.sort().values, layers):
        nodes = rows[group[rows].argsort(stable=True)]
        place = torch.full_like(group, -1)
        place[before] = torch.arange(len(before), device=group.device)
        row, column, value = csr_entries(select_rows(matrix, nodes))
        part = csr_from_entries(row, place[column], value, (len(nodes), len(before)))
        own = group[nodes]
        counts = torch.bincount(own[own >= 0], minlength=groups).tolist()
        steps.append(Step(nodes, FixedMatrix.of(part), place[nodes], own, counts))
        before = nodes
    return steps
