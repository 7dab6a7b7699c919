"""DEMO-Net (Wu, He and Xu, 2019), the version with separate weights for every degree.

A layer is, with N(i) the neighbors of i,

    E_i = b + W_self x_i + mean over j in N(i) of (W_global + W_deg(i)) x_j,

and a node without neighbors has W_global x_i for its second term. The mean commutes with the
weights: with m_i the mean of i's neighbors (x_i itself for a node without any), a layer is one
aggregation, the products X W_self and M W_global, and one product of M by groups, in which every
row is multiplied by the weights of its degree. In the first layer X and M never change. Dropout is
on both terms: on X W_self and on what comes from the neighbors, in every layer.

On a weighted graph the mean is weighted; a degree is still a number of neighbors. On a graph with
degrees that did not occur in training, a node uses the weights of the nearest degree that did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .._core.sparse import csr_entries, csr_from_entries
from ._ops.fixed_matrix import FixedMatrix, propagated, suited, times
from ._ops.random_draws import Dropout
from ._ops.receptive_field import Step, grouped_steps, select_rows
from ._ops.restricted_learner import LayeredNetwork, RestrictedLearner
from .base import Learner, Method
from .inputs import Inputs
from .settings import Settings

# What one more batched product costs, in padded rows.
CALL = 30


class DemoNet(Method):
    """Up to 1,000 epochs at 0.005; stops after 100 that bring nothing better on validation."""

    name = "demo-net"
    title = "DEMO-Net"
    defaults: ClassVar[Settings] = Settings(lr=0.005, epochs=1000, dropout=0.6, patience=100)

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        degrees = torch.bincount(inputs.degree).nonzero().view(-1)
        return DemoNetLearner(inputs, settings, seed, degrees[degrees > 0])

    def restore(self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]) -> Learner:
        degrees = state["degrees"].to(inputs.device)
        if degrees.dim() != 1 or degrees.dtype != torch.int64 or bool((degrees.diff() <= 0).any()):
            raise ValueError("the degrees are not whole numbers that rise")
        learner = DemoNetLearner(inputs, settings, 0, degrees)
        learner.module.load_state_dict(state)
        return learner


class DemoNetLayer(nn.Module):
    """E = b + X W_self + M W_global + M by groups, with a W_k for each non-zero degree."""

    def __init__(self, inputs: int, outputs: int, degrees: int) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.empty(inputs, outputs))
        self.common = nn.Parameter(torch.empty(inputs, outputs))
        self.by_degree = nn.Parameter(torch.empty(degrees, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor | FixedMatrix, m: Means, dropout: Dropout) -> Tensor:
        own = times(x, self.own)
        around = times(m.rows, self.common) + m.by_group(self.by_degree)
        out: Tensor = dropout(own) + dropout(around) + self.bias
        return out


class DemoNetLearner(RestrictedLearner):
    """ELU between the layers; ``degrees`` says which degree each W_k is for."""

    module: LayeredNetwork

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, degrees: Tensor) -> None:
        layer = partial(DemoNetLayer, degrees=len(degrees))
        super().__init__(inputs, settings, seed, partial(LayeredNetwork, layer))
        self.module.register_buffer("degrees", degrees)
        self.degrees = degrees

    def prepare(self, nodes: Tensor) -> tuple[Tensor, Any]:
        i, number = self.inputs, len(self.degrees)
        group = nearest(self.degrees, i.degree)
        steps = grouped_steps(neighbor_mean(i), group, number, nodes, self.settings.num_layers)
        first, *later = ((step, Groups.of(step)) for step in steps)
        return steps[-1].nodes, (*first_rows(*first, i.x), later)

    def scores(self, prepared: Any) -> Tensor:
        x, means, later = prepared
        first, *rest = self.module.layers
        h: Tensor = first(x, means, self.module.dropout)
        for layer, (step, groups) in zip(rest, later, strict=True):
            h = nn.functional.elu(h)
            means = Means(times(step.matrix, h), groups)
            h = layer(h[step.own], means, self.module.dropout)
        return h


def nearest(degrees: Tensor, wanted: Tensor) -> Tensor:
    """The place of the nearest of the sorted ``degrees`` (the lower of two); -1 for degree 0."""
    if not len(degrees):
        return torch.full_like(wanted, -1)
    place = torch.bucketize(wanted.double(), (degrees[1:] + degrees[:-1]).double() / 2)
    return place.masked_fill(wanted == 0, -1)


def neighbor_mean(inputs: Inputs) -> Tensor:
    """The matrix of the (weighted) mean over neighbors; a node without any is its own mean."""
    row, weight = inputs.edge_index[0], inputs.edge_weight
    value = (torch.ones_like(row) if weight is None else weight).double()
    total = value.new_zeros(inputs.num_nodes).index_add_(0, row, value)
    alone = (inputs.degree == 0).nonzero().view(-1)
    value = torch.cat([value / total[row], torch.ones_like(alone)]).to(inputs.dtype)
    row, column = torch.cat([inputs.edge_index, alone.expand(2, -1)], 1)
    return csr_from_entries(row, column, value, (inputs.num_nodes, inputs.num_nodes))


def first_rows(step: Step, groups: Groups, x: Tensor) -> tuple[Tensor | FixedMatrix, Means]:
    """The first layer's rows of X and of M; where M is sparse both are."""
    m = propagated(step.matrix.matrix, x)
    if m.layout == torch.strided:
        return (x if x.layout == torch.strided else x.to_dense())[step.own], Means(m, groups)
    # By groups, a sparse M is one wider matrix: an entry in a row of group k is moved k
    # widths to the right, where it is multiplied by the weights of that group.
    row, column, value = csr_entries(m)
    inside = step.group[row] >= 0
    row, value, column = row[inside], value[inside], (column + step.group[row] * m.shape[1])[inside]
    wide = csr_from_entries(row, column, value, (len(step.own), len(step.counts) * m.shape[1]))
    own = suited(select_rows(x, step.own))
    own_rows = own if own.layout == torch.strided else FixedMatrix.of(own)
    return own_rows, Means(FixedMatrix.of(m), groups, FixedMatrix.of(wide))


@dataclass(frozen=True)
class Means:
    """The rows of M, sorted by group; ``wide`` is their form for products by groups if sparse."""

    rows: Tensor | FixedMatrix
    groups: Groups
    wide: FixedMatrix | None = None

    def by_group(self, weights: Tensor) -> Tensor:
        """Each row times the weights of its group; nothing for a row without one."""
        if self.wide is not None:
            return times(self.wide, weights.flatten(0, 1))
        out: Tensor = _ByGroup.apply(self.rows, weights, self.groups)  # type: ignore[no-untyped-call]
        return out


@dataclass(frozen=True)
class Groups:
    """Rows sorted by group, laid out with padding so that a few batched products do them all.

    Groups ``low`` to ``high`` - 1 of a range have ``size`` padded rows each; row r, counted after
    the ``outside`` first ones, which belong to no group, is padded row ``place``[r].
    """

    outside: int
    place: Tensor
    ranges: list[tuple[int, int, int]]

    @classmethod
    def of(cls, step: Step) -> Groups:
        counts, number = np.array(step.counts, dtype=np.int64), len(step.counts)
        # The cheapest cut of the groups into ranges, each padded to its largest group.
        cost, cut = np.zeros(number + 1), [0] * (number + 1)
        for end in range(1, number + 1):
            largest = np.maximum.accumulate(counts[:end][::-1])[::-1]
            total = cost[:end] + np.arange(end, 0, -1) * largest + CALL
            cut[end], cost[end] = int(total.argmin()), total.min()
        ranges: list[tuple[int, int, int]] = []
        end = number
        while end:
            ranges.insert(0, (cut[end], end, int(counts[cut[end] : end].max())))
            end = cut[end]
        sizes = np.concatenate([[0], *(np.full(b - a, size) for a, b, size in ranges)])
        # A row moves by what was padded before its group.
        shift = sizes.cumsum()[:-1] - np.concatenate([[0], counts]).cumsum()[:-1]
        device = step.own.device
        place = torch.from_numpy(np.repeat(shift, counts) + np.arange(counts.sum())).to(device)
        return cls(len(step.own) - len(place), place, ranges)

    def padded(self, rows: Tensor) -> Tensor:
        length = sum((high - low) * size for low, high, size in self.ranges)
        empty = rows.new_zeros(length, rows.shape[1])
        return empty.index_copy_(0, self.place, rows[self.outside :])

    def unpadded(self, padded: Tensor) -> Tensor:
        return nn.functional.pad(padded[self.place], (0, 0, self.outside, 0))

    def pairs(
        self, first: Tensor, second: Tensor
    ) -> Iterator[tuple[tuple[int, int, int], Tensor, Tensor]]:
        """Each range with its part of two padded tensors, as (groups, size, width)."""
        start = 0
        for low, high, size in self.ranges:
            end = start + (high - low) * size
            a, b = (t[start:end].view(high - low, size, t.shape[1]) for t in (first, second))
            yield (low, high, size), a, b
            start = end


class _ByGroup(torch.autograd.Function):
    """Each row times the weights of its group."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, groups: Groups) -> Tensor:
        padded = groups.padded(rows)
        ctx.groups = groups
        ctx.save_for_backward(padded, weights)
        out = padded.new_empty(len(padded), weights.shape[2])
        for (low, high, _), a, o in groups.pairs(padded, out):
            torch.bmm(a, weights[low:high], out=o)
        return groups.unpadded(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None]:
        padded, weights = ctx.saved_tensors
        groups = ctx.groups
        pulled = groups.padded(grad)
        grad_weights = torch.empty_like(weights)
        for (low, high, _), a, g in groups.pairs(padded, pulled):
            torch.bmm(a.transpose(1, 2), g, out=grad_weights[low:high])
        if not ctx.needs_input_grad[0]:
            return None, grad_weights, None
        grad_padded = torch.empty_like(padded)
        for (low, high, _), a, g in groups.pairs(grad_padded, pulled):
            torch.bmm(g, weights[low:high].transpose(1, 2), out=a)
        return groups.unpadded(grad_padded), grad_weights, None
