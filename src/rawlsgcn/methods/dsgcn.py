"""DSGCN (Tang et al., 2020): weights that change with the degree, made by recurrent cells.

A layer is, with k(i) = min(max(deg(i), 1), 10),

    E_i = b + Σ_j Â_ij (W + W_k(i)) x_j,     W_k = tanh(cell k of input W and state W_(k-1)),

where a cell works on the rows of the matrices and W_0 is a learned initial state. The sum
commutes with the weights: a layer is Z = Â X, ten cells applied once, and ten products, one for the
rows of Z in each group. On a weighted graph Â includes the weights; k(i) still counts neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..balancing import propagation_matrix
from ._ops.fixed_matrix import FixedMatrix, propagated, times
from ._ops.random_draws import empty
from ._ops.receptive_field import grouped_steps, select_rows
from ._ops.restricted_learner import LayeredNetwork, RestrictedLearner
from .base import Learner, Method
from .inputs import Inputs
from .settings import Settings

CELLS = 10


class DSGCN(Method):
    """Ten cells in every layer; 200 epochs at the rate that validates best on Amazon-Photo."""

    name = "dsgcn"
    title = "DSGCN"
    defaults: ClassVar[Settings] = Settings(lr=0.005, epochs=200)
    grid: ClassVar[Mapping[str, Sequence[float]]] = {"lr": (0.05, 0.025, 0.01, 0.005)}

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        return DSGCNLearner(inputs, settings, seed, partial(LayeredNetwork, DSGCNLayer))


class DSGCNLayer(nn.Module):
    """W, W_0, ten cells of width d_out, and b."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.start = nn.Parameter(torch.empty(inputs, outputs))
        self.cells = nn.ModuleList(empty(nn.RNNCell, outputs, outputs) for _ in range(CELLS))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, z: Sequence[Tensor | FixedMatrix]) -> Tensor:
        """E, from the rows of Z in each of the ten groups."""
        state, outputs = self.start, []
        for cell, rows in zip(self.cells, z, strict=True):
            state = cell(self.weight, state)
            outputs.append(times(rows, self.weight + state))
        return torch.cat(outputs) + self.bias


class DSGCNLearner(RestrictedLearner):
    """ReLU and dropout between the layers; trained on the rows that training nodes depend on."""

    module: LayeredNetwork

    def prepare(self, nodes: Tensor) -> tuple[Tensor, Any]:
        i = self.inputs
        matrix = propagation_matrix(i.edge_index, i.edge_weight, i.num_nodes, dtype=i.dtype)
        group = i.degree.clamp(1, CELLS) - 1
        steps = grouped_steps(matrix, group, CELLS, nodes, self.settings.num_layers)
        first, *later = steps
        z = propagated(first.matrix.matrix, i.x)
        if z.layout == torch.strided:
            return steps[-1].nodes, (torch.split(z, first.counts), later)
        groups = torch.split(torch.arange(len(z), device=z.device), first.counts)
        parts = [FixedMatrix.of(select_rows(z, rows)) for rows in groups]
        return steps[-1].nodes, (parts, later)

    def scores(self, prepared: Any) -> Tensor:
        z, later = prepared
        first, *rest = self.module.layers
        h: Tensor = first(z)
        for layer, step in zip(rest, later, strict=True):
            h = self.module.dropout(torch.relu(h))
            h = layer(torch.split(times(step.matrix, h), step.counts))
        return h
