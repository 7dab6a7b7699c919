"""The receptive field: the rows of each layer that the nodes in the loss depend on.

A node's output in layer l depends on its neighbors' outputs in layer l-1 and on nothing else.
Counting back from the nodes in the loss gives, for each layer, the few rows that must be computed;
dropping the others changes no loss and no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ..._core.sparse import csr_entries, csr_from_entries, csr_tensor
from .fixed_matrix import FixedMatrix, propagated


def reached_rows(matrix: Tensor, targets: Tensor, layers: int) -> list[Tensor]:
    """For layers 1 to L, the sorted nodes whose output in that layer the ``targets`` depend on.

    ``matrix`` is any normalization of A or A + I in CSR form: only its pattern is used.
    """
    rows = [targets]
    for _ in range(layers - 1):
        columns = select_rows(matrix, rows[0]).col_indices()
        seen = torch.zeros(matrix.shape[1], dtype=torch.bool, device=matrix.device)
        seen[rows[0]] = True
        seen[columns.long()] = True
        rows.insert(0, seen.nonzero().view(-1))
    return rows


def restricted(matrix: Tensor, rows: list[Tensor], x: Tensor) -> list[FixedMatrix]:
    """The layers' matrices with only the :func:`reached_rows`: first (Â X), then Â of each layer.

    Â X does not change in training, so that it is computed once.
    """
    first = propagated(select_rows(matrix, rows[0]), x)
    later = [select_columns(select_rows(matrix, outer), inner) for inner, outer in pairwise(rows)]
    return [FixedMatrix.of(each) for each in (first, *later)]


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


def select_rows(matrix: Tensor, rows: Tensor) -> Tensor:
    """matrix[rows], for a dense or CSR matrix, without a loop."""
    if matrix.layout == torch.strided:
        return matrix[rows]
    crow, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    start = crow[rows].long()
    count = crow[rows + 1].long() - start
    new_crow = torch.zeros(len(rows) + 1, dtype=torch.long, device=matrix.device)
    torch.cumsum(count, 0, out=new_crow[1:])
    where = torch.repeat_interleave(start - new_crow[:-1], count)
    where += torch.arange(len(where), device=matrix.device)
    return csr_tensor(
        new_crow.to(crow.dtype), columns[where], values[where], (len(rows), matrix.shape[1])
    )


def select_columns(matrix: Tensor, columns: Tensor) -> Tensor:
    """matrix[:, columns] for a CSR matrix whose every entry lies in the sorted ``columns``."""
    place = torch.zeros(matrix.shape[1], dtype=torch.long, device=matrix.device)
    place[columns] = torch.arange(len(columns), device=matrix.device)
    new = place[matrix.col_indices().long()].to(matrix.col_indices().dtype)
    return csr_tensor(matrix.crow_indices(), new, matrix.values(), (matrix.shape[0], len(columns)))
