"""Tail-GNN (Liu et al., 2021): low-degree nodes are given the information that they miss.

A layer translates a node's features to what its neighbourhood should look like, r_i = γ_i ∘ r + β_i
with γ_i = LeakyReLU(G1 x_i + G2 n_i) + 1 and β_i = LeakyReLU(B1 x_i + B2 n_i), where n_i is the mean
of the neighbours. What the node misses is m_i = x_i + r_i - n_i. With Σ_i = x_i + Σ_{j in N(i)} x_j

    head branch   h_i = Wᵀ Σ_i / (deg(i) + 1) + b
    tail branch   h_i = (Wᵀ Σ_i + b + Wᵀ m_i) / (deg(i) + 2).

All but r_i is linear in the input, so a layer needs one aggregation a branch (``mixed`` below); the
costly maps G1, G2, B1 and B2 run only on the rows that reach the nodes asked for. Edge weights,
where there are any, weight Σ_i, n_i and deg(i) in the formulas; which node is a tail node, and how
many neighbours a forged one keeps, goes by the number of neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ..errors import RawlsError
from ..sparse import csr_tensor
from .base import Learner, Method
from .constant import Constant
from .inputs import Inputs
from .settings import Settings

# Layers with a wider input have their square maps replaced by d → 64 → d (the published code).
WIDE, BOTTLENECK = 1000, 64
# Evaluation holds at most so many entries of an n × d_in matrix at a time.
BLOCK_ENTRIES = 2**24
# Above this share of nonzeros a dense product is faster than a sparse one.
DENSE_ABOVE = 0.15


class _Product(torch.autograd.Function):
    """A constant matrix times a tensor that learns."""

    @staticmethod
    def forward(ctx: Any, constant: Constant, tensor: Tensor) -> Tensor:
        ctx.constant = constant
        return constant @ tensor

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.constant.T @ grad


def times(left: Tensor | Constant, right: Tensor) -> Tensor:
    """left @ right, whether the left side is an input of the network or a layer's output."""
    if isinstance(left, Constant):
        out: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
        return out
    return left @ right


def dense(value: Tensor | Constant) -> Tensor:
    return value.matrix.to_dense() if isinstance(value, Constant) else value


@dataclass(frozen=True)
class Seen:
    """What some rows of a layer see of its input.

    ``mixed`` is the linear part of the branch: Σ_i / (deg(i) + 1) in the head branch, and
    (Σ_i + x_i - n_i) / (deg(i) + 2) in the tail branch. ``x`` and ``n`` stand only for the rows
    whose translation is asked for, with deg(i) of the same rows.
    """

    mixed: Tensor | Constant
    x: Tensor | Constant
    n: Tensor | Constant
    degree: Tensor


class SquareMap(nn.Module):
    """A linear map d → d without bias; d → 64 → d where d is large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = [width, width] if width <= WIDE else [width, BOTTLENECK, width]
        self.factors = nn.ParameterList(
            nn.Parameter(torch.empty(a, b)) for a, b in itertools.pairwise(sizes)
        )

    def forward(self, x: Tensor | Constant) -> Tensor:
        out = times(x, self.factors[0])
        for factor in list(self.factors)[1:]:
            out = out @ factor
        return out


class TailLayer(nn.Module):
    """One layer with both branches; the generator only serves the published noise ablation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.r = nn.Parameter(torch.empty(inputs))
        self.g1, self.g2 = SquareMap(inputs), SquareMap(inputs)
        self.b1, self.b2 = SquareMap(inputs), SquareMap(inputs)
        self.generator = SquareMap(inputs)
        self.generator_bias = nn.Parameter(torch.empty(inputs))

    def translation(self, seen: Seen) -> Tensor:
        """r_i = γ_i ∘ r + β_i."""
        gamma = F.leaky_relu(self.g1(seen.x) + self.g2(seen.n), 0.2) + 1
        beta = F.leaky_relu(self.b1(seen.x) + self.b2(seen.n), 0.2)
        return torch.addcmul(beta, gamma, self.r)

    def missing(self, seen: Seen) -> Tensor:
        """m_i = x_i + r_i - n_i."""
        return dense(seen.x) + self.translation(seen) - dense(seen.n)

    def head(self, seen: Seen) -> Tensor:
        return times(seen.mixed, self.weight) + self.bias

    def tail(self, seen: Seen) -> Tensor:
        filled = torch.addmm(self.bias, self.translation(seen), self.weight)
        return times(seen.mixed, self.weight) + filled / (seen.degree + 2)[:, None]


class Discriminator(nn.Module):
    """How much a node's class scores look like those of a head node, as a logit."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, classes))
        self.bias = nn.Parameter(torch.empty(classes))
        self.out = nn.Parameter(torch.empty(classes, 1))

    def forward(self, scores: Tensor) -> Tensor:
        hidden = F.dropout(F.elu(scores), 0.5, self.training)
        return (F.elu(hidden @ self.weight + self.bias) @ self.out).view(-1)


class TailNetwork(nn.Module):
    """The layers, with ELU and dropout between them, and the discriminator of their outputs."""

    def __init__(self, sizes: list[int], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TailLayer(a, b) for a, b in itertools.pairwise(sizes))
        self.discriminator = Discriminator(sizes[-1])
        self.dropout = dropout

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Uniform in ±1/√(d_out), drawn on the CPU; d_out is every parameter's last dimension."""
        with torch.no_grad():
            for parameter in self.parameters():
                bound = 1 / math.sqrt(parameter.shape[-1])
                draw = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
                parameter.copy_(draw)

    def first(self, blocks: Iterable[Seen], tail: bool) -> Tensor:
        """The first layer's output, before ELU and dropout."""
        layer = self.layers[0]
        return torch.cat([(layer.tail if tail else layer.head)(seen) for seen in blocks])  # type: ignore[operator]

    def rest(self, h: Tensor, hops: list[Hop], tail: bool) -> tuple[Tensor, list[Seen]]:
        """The class scores, from the first layer's output, and what the later layers saw."""
        views = []
        for layer, hop in zip(list(self.layers)[1:], hops, strict=True):
            views.append(hop.view(F.dropout(F.elu(h), self.dropout, self.training)))
            h = (layer.tail if tail else layer.head)(views[-1])  # type: ignore[operator]
        return h, views


@dataclass(frozen=True)
class Hop:
    """The constant matrices of a branch from some input rows to some output rows of a layer."""

    mix: Constant
    own: Constant
    mean: Constant
    degree: Tensor

    def view(self, h: Tensor) -> Seen:
        return Seen(times(self.mix, h), times(self.own, h), times(self.mean, h), self.degree)

    def features(self, x: Tensor) -> Seen:
        """The view of the network's input, which never changes: computed once."""
        mixed, own, mean = (_aggregated(m, x) for m in (self.mix, self.own, self.mean))
        return Seen(mixed, own, mean, self.degree)


def _aggregated(matrix: Constant, x: Tensor) -> Constant:
    """A matrix times the features, in the form that is faster to multiply with."""
    if x.layout == torch.strided:
        return Constant.of(matrix @ x)
    product = torch.sparse.mm(matrix.matrix.to_sparse_coo(), x.to_sparse_coo()).coalesce()
    if product.values().numel() > DENSE_ABOVE * product.shape[0] * product.shape[1]:
        return Constant.of(product.to_dense())
    return Constant.of(_csr(*product.indices(), product.values(), tuple(product.shape)))


def _csr(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A CSR matrix from unique entries, with the 32-bit indices that products are faster with."""
    order = torch.argsort(row * shape[1] + column)
    starts = torch.zeros(shape[0] + 1, dtype=torch.int32, device=row.device)
    starts[1:] = torch.bincount(row, minlength=shape[0]).cumsum(0)
    return csr_tensor(starts, column[order].int(), values[order], shape)


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
        return torch.zeros(
            self.nodes, dtype=self.weight.dtype, device=self.weight.device
        ).index_add_(0, self.row, self.weight)

    def rows(self, targets: Tensor, layers: int) -> list[Tensor]:
        """For layers 1 to L, the sorted nodes whose output there the ``targets`` depend on."""
        reached = [targets]
        for _ in range(layers - 1):
            wanted = torch.zeros(self.nodes, dtype=torch.bool, device=self.row.device)
            wanted[reached[0]] = True
            closed = wanted.clone()
            closed[self.column[wanted[self.row]]] = True
            reached.insert(0, closed.nonzero().view(-1))
        return reached

    def hop(self, rows: Tensor, columns: Tensor, about: Tensor) -> Hop:
        """From a layer's input at ``columns`` to its ``rows``, with translations of ``about``."""
        near, degree = self.weight, self.degree
        share = near / degree[self.row]
        if self.tail:
            scale = 1 / (degree + 2)
            mix = self._matrix(rows, columns, (near - share) * scale[self.row], 2 * scale)
        else:
            scale = 1 / (degree + 1)
            mix = self._matrix(rows, columns, near * scale[self.row], scale)
        own = self._matrix(about, columns, None, torch.ones_like(degree))
        mean = self._matrix(about, columns, share, None)
        return Hop(mix, own, mean, degree[about])

    def _matrix(
        self, rows: Tensor, columns: Tensor, near: Tensor | None, own: Tensor | None
    ) -> Constant:
        """The rows of a matrix with ``near`` on the edges and ``own`` on the diagonal."""
        at, to = self._places(rows), self._places(columns)
        parts = []
        if near is not None:
            keep = at[self.row] >= 0
            parts.append((at[self.row[keep]], to[self.column[keep]], near[keep]))
        if own is not None:
            parts.append((torch.arange(len(rows), device=rows.device), to[rows], own[rows]))
        line, place, values = (torch.cat(part) for part in zip(*parts, strict=True))
        return Constant.of(_csr(line, place, values, (len(rows), len(columns))))

    def _places(self, nodes: Tensor) -> Tensor:
        place = torch.full((self.nodes,), -1, device=nodes.device)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        return place


def forged(branch: Branch, train: Tensor, k: int, generator: torch.Generator) -> Branch:
    """The forged tail graph: training nodes of degree ≥ k keep 1 to k random neighbours.

    Only their own rows lose entries; others still see them. Drawn on the CPU, so that a seed
    means the same on every device.
    """
    row = branch.row.cpu()
    count = torch.bincount(row, minlength=branch.nodes)
    limit = count.clone()
    heads = train.cpu()
    heads = heads[count[heads] >= k]
    limit[heads] = torch.randint(1, k + 1, (len(heads),), generator=generator)
    key = torch.rand(len(row), dtype=torch.float64, generator=generator)
    shuffled = torch.argsort(key)
    shuffled = shuffled[torch.argsort(row[shuffled], stable=True)]
    rank = torch.empty_like(row)
    rank[shuffled] = torch.arange(len(row)) - (count.cumsum(0) - count)[row[shuffled]]
    keep = (rank < limit[row]).to(branch.row.device)
    return Branch(branch.row[keep], branch.column[keep], branch.weight[keep], branch.nodes, True)


@dataclass(frozen=True)
class Plan:
    """All that a branch needs to compute the class scores of some nodes."""

    blocks: Iterable[Seen]
    hops: list[Hop]
    tail: bool


@dataclass(frozen=True)
class TailSettings(Settings):
    """η is ``adversary``, μ is ``missing``, and k, the degree up to which a node is a tail node,
    is ``tail_degree``."""

    tail_degree: int = 5
    adversary: float = 0.1
    missing: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.tail_degree >= 1, "tail_degree", "at least 1")
        self._require(self.adversary >= 0, "adversary", "zero or a positive number")
        self._require(self.missing >= 0, "missing", "zero or a positive number")


class TailLearner(Learner):
    """Two turns of the discriminator and one of the network in every epoch."""

    module: TailNetwork

    def __init__(self, inputs: Inputs, settings: TailSettings, seed: int) -> None:
        self.inputs, self.settings = inputs, settings
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        hidden = [settings.hidden] * (settings.layers - 1)
        sizes = [inputs.num_features, *hidden, inputs.classes]
        self.module = TailNetwork(sizes, settings.dropout)
        self.module.reset_parameters(generator)
        self.module.to(inputs.device, inputs.dtype)
        row, column = inputs.edge_index
        weight = inputs.edge_weight
        weight = torch.ones_like(row) if weight is None else weight
        weight = weight.to(inputs.dtype)
        self.head = Branch(row, column, weight, inputs.num_nodes, tail=False)
        self.tail = replace(self.head, tail=True)
        self.forged = forged(self.tail, inputs.train, settings.tail_degree, generator)
        self.model_optimiser, self.discriminator_optimiser = (
            torch.optim.Adam(
                part.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True
            )
            for part in (self.module.layers, self.module.discriminator)
        )

    @cached_property
    def training(self) -> tuple[Plan, Plan]:
        """The head branch on the graph and the tail branch on the forged one, at training nodes."""
        train = self.inputs.train
        return tuple(self._plan(branch, train, train) for branch in (self.head, self.forged))  # type: ignore[return-value]

    def epoch(self) -> float:
        self.module.train()
        # The weights stand still until the last turn and dropout comes after the first layer:
        # its outputs serve every turn.
        firsts = [self.module.first(plan.blocks, plan.tail) for plan in self.training]
        for _ in range(2):
            self.discriminator_turn(firsts)
        return self.model_turn(firsts)

    def discriminator_turn(self, firsts: list[Tensor]) -> float:
        with torch.no_grad():
            head, tail = (
                self.module.rest(first, plan.hops, plan.tail)[0]
                for first, plan in zip(firsts, self.training, strict=True)
            )
        self.discriminator_optimiser.zero_grad()
        loss = (self._judged(head, 1) + self._judged(tail, 0)) / 2
        loss.backward()  # type: ignore[no-untyped-call]
        self.discriminator_optimiser.step()
        return loss.item()

    def model_turn(self, firsts: list[Tensor]) -> float:
        """½ (CE_head + CE_tail) - η BCE(tail, 0) + μ Σ_l mean ‖m^(l)‖."""
        train, (head_plan, tail_plan) = self.inputs.train, self.training
        head, views = self.module.rest(firsts[0], head_plan.hops, tail=False)
        tail, _ = self.module.rest(firsts[1], tail_plan.hops, tail=True)
        y = self.inputs.y[train]
        missing = torch.stack(
            [
                layer.missing(seen).norm(dim=1).mean()  # type: ignore[operator]
                for layer, seen in zip(self.module.layers, [*head_plan.blocks, *views], strict=True)
            ]
        )
        loss = (
            (F.cross_entropy(head, y) + F.cross_entropy(tail, y)) / 2
            - self.settings.adversary * self._judged(tail, 0)
            + self.settings.missing * missing.sum()
        )
        self.model_optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.model_optimiser.step()
        return loss.item()

    def _judged(self, scores: Tensor, label: int) -> Tensor:
        logits: Tensor = self.module.discriminator(scores)
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))

    @torch.no_grad()
    def logits(self) -> Tensor:
        """A node of degree > k is read by the head branch, the others by the tail branch."""
        nodes = torch.arange(self.inputs.num_nodes, device=self.inputs.device)
        out = self.inputs.x.new_empty(len(nodes), self.inputs.classes)
        for part, plan in self._plans(nodes):
            out[part] = self._scores(plan)
        return out

    @torch.no_grad()
    def validation_score(self) -> float:
        right = [
            (self._scores(plan).argmax(1) == self.inputs.y[part]).float()
            for part, plan in self.validation
        ]
        return torch.cat(right).mean().item()

    @cached_property
    def validation(self) -> list[tuple[Tensor, Plan]]:
        """The validation nodes' rows, kept because every epoch needs them."""
        plans = self._plans(self.inputs.val)
        return [(part, replace(plan, blocks=list(plan.blocks))) for part, plan in plans]

    def _scores(self, plan: Plan) -> Tensor:
        self.module.eval()
        return self.module.rest(self.module.first(plan.blocks, plan.tail), plan.hops, plan.tail)[0]

    def _plans(self, nodes: Tensor) -> Iterator[tuple[Tensor, Plan]]:
        is_head = self.inputs.degree[nodes] > self.settings.tail_degree
        for branch, part in ((self.head, nodes[is_head]), (self.tail, nodes[~is_head])):
            if len(part):
                yield part, self._plan(branch, part)

    def _plan(self, branch: Branch, targets: Tensor, about: Tensor | None = None) -> Plan:
        """What ``branch`` needs for the scores of ``targets``.

        Training tells the head branch ``about`` which nodes it wants translations, and has the
        first layer in one block. Evaluation gets it in blocks, each made when it is asked for.
        """
        everything = torch.arange(self.inputs.num_nodes, device=targets.device)
        rows = branch.rows(targets, self.settings.layers)
        told = targets[:0] if about is None else about

        def hop(to: Tensor, columns: Tensor) -> Hop:
            return branch.hop(to, columns, to if branch.tail else told)

        size = max(1, BLOCK_ENTRIES // self.inputs.num_features if about is None else len(rows[0]))
        blocks = (hop(part, everything).features(self.inputs.x) for part in rows[0].split(size))
        hops = [hop(to, columns) for columns, to in itertools.pairwise(rows)]
        return Plan(blocks if about is None else list(blocks), hops, branch.tail)


class TailGNN(Method):
    """Head and tail branches with an adversary between them; up to 1000 epochs at 0.01."""

    name = "tail-gnn"
    title = "Tail-GNN"
    defaults: ClassVar[TailSettings] = TailSettings(
        lr=0.01, epochs=1000, weight_decay=1e-4, patience=200
    )

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> TailLearner:
        assert isinstance(settings, TailSettings)
        if settings.normalisation != "renormalised":
            raise RawlsError(
                f"tail-gnn has no normalisation '{settings.normalisation}': it takes means over "
                "neighbours; leave the setting out"
            )
        return TailLearner(inputs, settings, seed)
