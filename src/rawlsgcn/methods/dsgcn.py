"""DSGCN (Tang et al., 2020): weights that change with the degree, written by recurrent cells.

A layer is, with k(i) = min(max(deg(i), 1), 10),

    E_i = b + Σ_j Â_ij (W + W_k(i)) x_j,     W_k = tanh(cell k of input W and state W_(k-1)),

where a cell works on the rows of the matrices and W_0 is a learnt start. The sum commutes with the
weights: a layer is Z = Â X, ten cells applied once, and ten products, one for the rows of Z in
each group. On a weighted graph Â holds the weights; k(i) still counts neighbours.

``Reach`` and ``GroupedLearner`` serve every method whose weights depend on a node's degree.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..balancing import propagation_matrix
from ..errors import RawlsError
from ..sparse import csr_tensor
from .base import Convolutional, Learner, Method
from .constant import Constant
from .inputs import Inputs
from .settings import Settings

CELLS = 10
# Above this share of nonzeros a dense product is faster than a sparse one.
DENSE_ABOVE = 0.15


class DSGCN(Method):
    """Ten cells in every layer; 200 epochs at the rate that validates best on Amazon-Photo."""

    name = "dsgcn"
    title = "DSGCN"
    defaults: ClassVar[Settings] = Settings(lr=0.005, epochs=200)

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        if settings.normalisation != "renormalised":
            raise RawlsError(
                f"dsgcn has no normalisation '{settings.normalisation}': it is defined with the "
                "renormalised Laplacian; use rawlsgcn-graph for the others"
            )
        return DSGCNLearner(inputs, settings, seed)


class DSGCNLayer(nn.Module):
    """W, W_0, ten cells of width d_out, and b."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.start = nn.Parameter(torch.empty(inputs, outputs))
        self.cells = nn.ModuleList(nn.RNNCell(outputs, outputs) for _ in range(CELLS))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, z: Iterable[Tensor | Constant]) -> Tensor:
        """E, from the rows of Z in each of the ten groups."""
        state, outputs = self.start, []
        for cell, rows in zip(self.cells, z, strict=True):
            state = cell(self.weight, state)
            outputs.append(product(rows, self.weight + state))
        return torch.cat(outputs) + self.bias


class DSGCNNetwork(nn.Module):
    """L layers with ReLU and dropout between them."""

    def __init__(self, sizes: list[int], p: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DSGCNLayer(a, b) for a, b in itertools.pairwise(sizes))
        self.p = p

    def forward(self, z: list[Tensor | Constant], reach: Reach) -> Tensor:
        """The targets' scores; ``z`` holds the rows of Â X that the first layer needs."""
        h: Tensor = self.layers[0](z)
        for layer, step in zip(list(self.layers)[1:], reach.steps[1:], strict=True):
            h = nn.functional.dropout(torch.relu(h), self.p, self.training)
            h = layer(torch.split(product(step.matrix, h), step.counts))
        return h


class GroupedLearner(Learner):
    """Trains a module on the :class:`Reach` of the training nodes: no other row matters."""

    def __init__(self, inputs: Inputs, settings: Settings, seed: int, module: nn.Module) -> None:
        """Every value is drawn from ±1/√(d_out), on the CPU: a seed means the same anywhere."""
        self.inputs, self.settings, self.module = inputs, settings, module
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        for parameter in module.parameters():
            bound = 1 / math.sqrt(parameter.shape[-1])
            draw = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
            parameter.data.copy_(draw)
        module.to(inputs.device, inputs.dtype)
        self.optimiser = torch.optim.Adam(
            module.parameters(), settings.lr, weight_decay=settings.weight_decay, fused=True
        )

    @abstractmethod
    def arguments(self, targets: Tensor) -> tuple[Any, ...]:
        """What the module is called with for these targets; the last of it is their Reach."""

    @cached_property
    def training(self) -> tuple[Any, ...]:
        return self.arguments(self.inputs.train)

    @cached_property
    def validation(self) -> tuple[Any, ...]:
        return self.arguments(self.inputs.val)

    def epoch(self) -> float:
        self.module.train()
        self.optimiser.zero_grad()
        labels = self.inputs.y[self.training[-1].targets]
        loss = nn.functional.cross_entropy(self.module(*self.training), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.item()

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
        return (logits.argmax(1) == labels).float().mean().item()


class DSGCNLearner(GroupedLearner):
    def __init__(self, inputs: Inputs, settings: Settings, seed: int) -> None:
        network = DSGCNNetwork(Convolutional.sizes(inputs, settings), settings.dropout)
        super().__init__(inputs, settings, seed, network)

    def arguments(self, targets: Tensor) -> tuple[list[Tensor | Constant], Reach]:
        i = self.inputs
        matrix = propagation_matrix(i.edge_index, i.edge_weight, i.num_nodes, dtype=i.dtype)
        group = i.degree.clamp(1, CELLS) - 1
        reach = Reach.of(entries(matrix), group, CELLS, targets, self.settings.layers)
        z, counts = times(reach.steps[0].matrix.matrix, i.x), reach.steps[0].counts
        if z.layout == torch.strided:
            return list(torch.split(z, counts)), reach
        parts: list[Tensor | Constant] = []
        row, column, value = entries(z)
        for start, end in itertools.pairwise(itertools.accumulate(counts, initial=0)):
            kept = (row >= start) & (row < end)
            shape = (end - start, i.num_features)
            parts.append(Constant.of(csr(row[kept] - start, column[kept], value[kept], shape)))
        return parts, reach


@dataclass(frozen=True)
class Step:
    """One layer's rows, sorted by group.

    ``matrix`` takes the rows before (first: every node) to these, ``own`` says where each of
    these rows stood among them, and ``counts`` how many of these rows each group has.
    """

    matrix: Constant
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
        """For a matrix given as rows, columns and values; -1 as a group means none."""
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
            part = csr(new[row[kept]], old[column[kept]], value[kept], (len(nodes), len(before)))
            own = group[nodes]
            counts = torch.bincount(own[own >= 0], minlength=groups).tolist()
            steps.append(Step(Constant.of(part), old[nodes], own, counts))
        return cls(levels[-1], steps)


class _Product(torch.autograd.Function):
    """A constant matrix times a dense one that learns."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, constant: Constant) -> Tensor:
        ctx.constant = constant
        return constant @ dense

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.constant.transpose @ grad, None


def product(a: Tensor | Constant, b: Tensor) -> Tensor:
    """A B, with a gradient for B, and for A unless it is constant."""
    out: Tensor = a @ b if isinstance(a, Tensor) else _Product.apply(b, a)  # type: ignore[no-untyped-call]
    return out


def csr(row: Tensor, column: Tensor, value: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix with 32-bit indices from entries in any order."""
    order = (row * shape[1] + column).argsort()
    crow = torch.zeros(shape[0] + 1, dtype=torch.long, device=row.device)
    torch.cumsum(torch.bincount(row, minlength=shape[0]), 0, out=crow[1:])
    return csr_tensor(crow.int(), column[order].int(), value[order], shape)


def entries(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows, columns and values of a CSR matrix."""
    counts = matrix.crow_indices().diff().long()
    row = torch.repeat_interleave(torch.arange(len(counts), device=matrix.device), counts)
    return row, matrix.col_indices().long(), matrix.values()


def times(matrix: Tensor, x: Tensor) -> Tensor:
    """A CSR matrix times features, kept sparse where both are and the product is too."""
    if x.layout == torch.strided:
        return matrix @ x
    # scipy's product: torch has none for CSR with 32-bit indices on every build.
    from scipy import sparse

    a, b = (
        sparse.csr_array(
            tuple(p.cpu().numpy() for p in (m.values(), m.col_indices(), m.crow_indices())),
            shape=tuple(m.shape),
        )
        for m in (matrix, x)
    )
    c = (a @ b).tocoo()
    row, column = (torch.from_numpy(i.astype("int64")) for i in (c.row, c.col))
    out = csr(row, column, torch.from_numpy(c.data), c.shape).to(matrix.device)
    dense = c.nnz > DENSE_ABOVE * c.shape[0] * c.shape[1]
    return out.to_dense() if dense else out
