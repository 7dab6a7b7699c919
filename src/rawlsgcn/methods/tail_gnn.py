"""Tail-GNN (Liu et al., 2021): the information that low-degree nodes miss is predicted.

With n_i the mean of the neighbors, a layer translates x_i to what the neighborhood should be,
r_i = γ_i ∘ r + β_i with γ_i = LeakyReLU(G1 x_i + G2 n_i) + 1 and β_i = LeakyReLU(B1 x_i + B2 n_i).
What node i misses is m_i = x_i + r_i - n_i. With Σ_i = x_i + Σ_{j in N(i)} x_j

    head branch   h_i = Wᵀ Σ_i / (deg(i) + 1) + b
    tail branch   h_i = (Wᵀ Σ_i + b + Wᵀ m_i) / (deg(i) + 2).

All but r_i is linear in the input, so a layer needs one aggregation a branch (``mixed`` below); the
costly maps G1, G2, B1 and B2 run only on the rows that the wanted nodes depend on. Edge weights,
where there are any, weight Σ_i, n_i and deg(i) in the formulas; which node is a tail node, and how
many neighbors a forged one keeps, goes by the number of neighbors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, elu, leaky_relu

from ._ops.fixed_matrix import FixedMatrix, times
from ._ops.random_draws import Dropout
from ._ops.receptive_field import reached_rows
from ._ops.restricted_learner import LayeredNetwork, RestrictedLearner
from .base import Method, fused_adam, take_step
from .inputs import Inputs
from .settings import Settings
from .tail_gnn_forged_tails import Branch, Hop, Plan, View, forged

# Layers with a wider input have their square maps replaced by d → 64 → d (the published code).
WIDE, BOTTLENECK = 1000, 64
# Evaluation needs at most so many entries of an n × d_in matrix at a time.
BLOCK_ENTRIES = 2**24


class SquareMap(nn.Module):
    """A linear map d → d without bias; d → 64 → d where d is large."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = [width, width] if width <= WIDE else [width, BOTTLENECK, width]
        self.factors = nn.ParameterList(torch.empty(pair) for pair in pairwise(sizes))

    def forward(self, x: Tensor | FixedMatrix) -> Tensor:
        first, *rest = self.factors
        out = times(x, first)
        for factor in rest:
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

    def translation(self, view: View) -> Tensor:
        """r_i = γ_i ∘ r + β_i."""
        gamma = leaky_relu(self.g1(view.x) + self.g2(view.n), 0.2) + 1
        beta = leaky_relu(self.b1(view.x) + self.b2(view.n), 0.2)
        return torch.addcmul(beta, gamma, self.r)

    def missing(self, view: View) -> Tensor:
        """m_i = x_i + r_i - n_i."""
        x, n = (v.matrix.to_dense() if isinstance(v, FixedMatrix) else v for v in (view.x, view.n))
        return x + self.translation(view) - n

    def forward(self, view: View, tail: bool) -> Tensor:
        linear = times(view.mixed, self.weight)
        if not tail:
            return linear + self.bias
        filled = torch.addmm(self.bias, self.translation(view), self.weight)
        return linear + filled / (view.degree + 2)[:, None]


class Discriminator(nn.Module):
    """How much a node's class scores look like those of a head node, as a logit."""

    def __init__(self, classes: int, random: torch.Generator) -> None:
        super().__init__()
        self.dropout = Dropout(0.5, random)
        self.weight = nn.Parameter(torch.empty(classes, classes))
        self.bias = nn.Parameter(torch.empty(classes))
        self.out = nn.Parameter(torch.empty(classes, 1))

    def forward(self, scores: Tensor) -> Tensor:
        hidden = self.dropout(elu(scores)) @ self.weight + self.bias
        return (elu(hidden) @ self.out).view(-1)

    def loss(self, scores: Tensor, label: int) -> Tensor:
        """BCE(scores, label): 1 for outputs of the head branch, 0 for those of the tail branch."""
        logits = self(scores)
        return binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))


class TailNetwork(LayeredNetwork):
    """The layers, with ELU and dropout between them, and the discriminator of their outputs."""

    def __init__(self, sizes: list[int], dropout: float, random: torch.Generator) -> None:
        super().__init__(TailLayer, sizes, dropout, random)
        self.discriminator = Discriminator(sizes[-1], random)

    def first(self, plan: Plan) -> Tensor:
        """The first layer's output, before ELU and dropout."""
        return torch.cat([self.layers[0](view, plan.tail) for view in plan.first])

    def rest(self, h: Tensor, plan: Plan) -> tuple[Tensor, list[View]]:
        """The class scores, from the first layer's output, and what the later layers saw."""
        views = []
        for layer, hop in zip(list(self.layers)[1:], plan.hops, strict=True):
            views.append(hop.view(self.dropout(elu(h))))
            h = layer(views[-1], plan.tail)
        return h, views


@dataclass(frozen=True)
class TailSettings(Settings):
    """k, up to which degree a node is a tail node, is ``tail_degree``; η is ``adversary``, the
    weight of the discriminator, and μ is ``missing``, that of the missing information."""

    tail_degree: int = 5
    adversary: float = 0.1
    missing: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.tail_degree >= 1, "tail_degree", "at least 1")
        self._require(0 <= self.adversary < math.inf, "adversary", "zero or a positive number")
        self._require(0 <= self.missing < math.inf, "missing", "zero or a positive number")


class TailLearner(RestrictedLearner):
    """Two turns of the discriminator and one of the network in every epoch."""

    module: TailNetwork
    settings: TailSettings

    def __init__(self, inputs: Inputs, settings: TailSettings, seed: int) -> None:
        super().__init__(inputs, settings, seed, TailNetwork)
        row, column = inputs.edge_index
        weight = torch.ones_like(row) if inputs.edge_weight is None else inputs.edge_weight
        self.head = Branch(row, column, weight.to(inputs.dtype), inputs.num_nodes, tail=False)
        self.tail = replace(self.head, tail=True)
        self.forged = forged(self.tail, inputs.train, settings.tail_degree, self.generator)
        self.model_optimizer, self.discriminator_optimizer = (
            fused_adam(part.parameters(), settings)
            for part in (self.module.layers, self.module.discriminator)
        )

    @cached_property
    def training(self) -> tuple[Tensor, list[Plan]]:
        """The head branch on the graph and the tail branch on the forged one, at training nodes."""
        train = self.inputs.train
        return train, [self._plan(branch, train, train) for branch in (self.head, self.forged)]

    def epoch(self) -> float:
        self.module.train()
        # No weight of the network changes before its own turn, and dropout comes after the first
        # layer: its outputs serve all turns.
        first = [self.module.first(plan) for plan in self.training[1]]
        for _ in range(2):
            self.discriminator_turn(first)
        return self.model_turn(first)

    def discriminator_turn(self, first: list[Tensor]) -> None:
        with torch.no_grad():
            head, tail = (
                self.module.rest(part.detach(), plan)[0]
                for part, plan in zip(first, self.training[1], strict=True)
            )
        discriminator = self.module.discriminator
        loss = (discriminator.loss(head, 1) + discriminator.loss(tail, 0)) / 2
        take_step(self.discriminator_optimizer, loss)

    def model_turn(self, first: list[Tensor]) -> float:
        """½ (CE_head + CE_tail) - η BCE(tail, 0) + μ Σ_l mean ‖m^(l)‖, m from the head."""
        nodes, plans = self.training
        (head, views), (tail, _) = map(self.module.rest, first, plans)
        seen = zip(self.module.layers, [*plans[0].first, *views], strict=True)
        missing = [layer.missing(view).norm(dim=1).mean() for layer, view in seen]  # type: ignore[operator]
        y = self.inputs.y[nodes]
        loss = (
            (cross_entropy(head, y) + cross_entropy(tail, y)) / 2
            - self.settings.adversary * self.module.discriminator.loss(tail, 0)
            + self.settings.missing * torch.stack(missing).sum()
        )
        return take_step(self.model_optimizer, loss)

    def scores(self, prepared: list[Plan]) -> Tensor:
        network = self.module
        return torch.cat([network.rest(network.first(plan), plan)[0] for plan in prepared])

    @cached_property
    def validation(self) -> tuple[Tensor, list[Plan]]:
        """The validation nodes' rows, kept because every epoch needs them."""
        nodes, plans = self.prepare(self.inputs.val)
        return nodes, [replace(plan, first=list(plan.first)) for plan in plans]

    def prepare(self, nodes: Tensor) -> tuple[Tensor, list[Plan]]:
        """A node of degree > k is read by the head branch, the others by the tail branch."""
        is_head = self.inputs.degree[nodes] > self.settings.tail_degree
        head, tail = nodes[is_head], nodes[~is_head]
        plans = [self._plan(self.head, head), self._plan(self.tail, tail)]
        return torch.cat([head, tail]), plans

    def _plan(self, branch: Branch, targets: Tensor, about: Tensor | None = None) -> Plan:
        """The rows of a branch for some targets.

        In training the head branch translates the nodes ``about``, and the first layer is in one
        piece; in evaluation it is in pieces, each made when it is used.
        """
        x, size = self.inputs.x, BLOCK_ENTRIES // self.inputs.num_features
        everything = torch.arange(self.inputs.num_nodes, device=x.device)
        rows = reached_rows(branch.mix, targets, self.settings.num_layers)
        translated = targets[:0] if about is None else about

        def hop(to: Tensor, columns: Tensor) -> Hop:
            return branch.hop(to, columns, to if branch.tail else translated)

        pieces = torch.split(rows[0], max(1, size if about is None else len(rows[0])))
        first = (hop(piece, everything).features(x) for piece in pieces)
        hops = [hop(to, columns) for columns, to in pairwise(rows)]
        return Plan(first if about is None else list(first), hops, branch.tail)


class TailGNN(Method):
    """Head and tail branches with an adversary between them; up to 1000 epochs at 0.01."""

    name = "tail-gnn"
    title = "Tail-GNN"
    defaults: ClassVar[TailSettings] = TailSettings(epochs=1000, weight_decay=1e-4, patience=200)

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> TailLearner:
        assert isinstance(settings, TailSettings)
        return TailLearner(inputs, settings, seed)
