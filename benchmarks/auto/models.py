"""APPNP, GraphSAGE and GAT of torch_geometric, and a fast way to train many runs of one of them.

The runs are modules of torch_geometric layers. They are trained side by side by a forward pass that
gives the same numbers and does less work:

- a node's output is computed only if a training node depends on it (two layers reach two hops);
- the product of the features with the first weights of all runs is one sparse product;
- what training does not change is computed once: the mean of the neighbors' features in GraphSAGE,
  and in APPNP the rows of the propagation matrix that belong to the training nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import APPNP, GATConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from rawlsgcn._core.sparse import csr_from_entries
from rawlsgcn.methods import Inputs
from rawlsgcn.methods._ops.fixed_matrix import FixedMatrix, propagated, times
from rawlsgcn.methods._ops.receptive_field import reached_rows, select_columns, select_rows

from .operations import EdgeSums, SharedFeatures, dropped, weighted_sums

STEPS, TELEPORT, HEADS = 10, 0.1, 8


#: The parameters of several runs by name, each of shape (runs, ...).
Weights = Mapping[str, Tensor]


class TwoLayers(nn.Module):
    """Two torch_geometric layers ``first`` and ``second``."""

    first: nn.Module
    second: nn.Module


class AppnpNetwork(TwoLayers):
    """APPNP: an MLP of two layers, then ten steps of personalized PageRank with teleport 0.1."""

    def __init__(self, features: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.propagation = APPNP(STEPS, TELEPORT, cached=True)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = functional.dropout(x, self.dropout, self.training)
        h = functional.dropout(self.first(x).relu(), self.dropout, self.training)
        out: Tensor = self.propagation(self.second(h), edge_index)
        return out


class SageNetwork(TwoLayers):
    """GraphSAGE with the mean of the neighbors, dropout after the first layer."""

    def __init__(self, features: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, hidden), SAGEConv(hidden, classes)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = functional.dropout(self.first(x, edge_index).relu(), self.dropout, self.training)
        out: Tensor = self.second(h, edge_index)
        return out


class GatNetwork(TwoLayers):
    """GAT with eight heads, then one; dropout of inputs and of attention, as published."""

    def __init__(self, features: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.first = GATConv(features, hidden // HEADS, HEADS, dropout=dropout)
        self.second = GATConv(hidden, classes, 1, concat=False, dropout=dropout)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(functional.dropout(x, self.dropout, self.training), edge_index)
        h = functional.dropout(functional.elu(h), self.dropout, self.training)
        out: Tensor = self.second(h, edge_index)
        return out


class SideBySide(ABC):
    """The forward pass of several runs of one network at once, for some target nodes.

    Args:
        inputs: The graph.
        targets: The nodes whose logits are computed; None for all nodes.
    """

    network: ClassVar[type[TwoLayers]]

    def __init__(self, inputs: Inputs, targets: Tensor | None) -> None:
        self.inputs = inputs
        self.targets = torch.arange(inputs.num_nodes) if targets is None else targets
        self.targets = self.targets.to(inputs.device)

    @abstractmethod
    def __call__(self, weights: Weights, dropout: float) -> Tensor:
        """Compute the logits of every run, of shape (targets, runs, classes).

        Args:
            weights: The parameters of the network by name, each of shape (runs, ...).
            dropout: The probability of dropout.
        """

    @abstractmethod
    def numbers(self, hidden: int) -> int:
        """The size of the largest tensor of one run, by which runs are divided into blocks."""


class AppnpSideBySide(SideBySide):
    network = AppnpNetwork

    def __init__(self, inputs: Inputs, targets: Tensor | None) -> None:
        super().__init__(inputs, targets)
        self.features = SharedFeatures(inputs.x)
        nodes = inputs.num_nodes
        index, weight = gcn_norm(inputs.edge_index, inputs.edge_weight, nodes, dtype=inputs.dtype)
        self.normalized = csr_from_entries(index[1], index[0], weight, (nodes, nodes))
        self.rows: Tensor | None = None
        if targets is not None:
            # Π is symmetric, because Â is: its rows are Π applied to unit vectors.
            units = torch.zeros(nodes, len(targets), dtype=inputs.dtype, device=inputs.device)
            units[self.targets, torch.arange(len(targets), device=inputs.device)] = 1
            self.rows = self._propagated(units).t().contiguous()

    def _propagated(self, z: Tensor) -> Tensor:
        out = z
        for _ in range(STEPS):
            out = (1 - TELEPORT) * (self.normalized @ out) + TELEPORT * z
        return out

    def __call__(self, weights: Weights, dropout: float) -> Tensor:
        h = self.features.times(weights["first.weight"], dropout)
        h = dropped((h + weights["first.bias"]).relu(), dropout)
        z = torch.einsum("nrh,rch->nrc", h, weights["second.weight"])
        z = (z + weights["second.bias"]).flatten(1)
        out = self._propagated(z) if self.rows is None else self.rows @ z
        return out.view(len(out), len(weights["first.bias"]), -1)

    def numbers(self, hidden: int) -> int:
        return self.inputs.num_nodes * hidden


class _TwoHops(SideBySide):
    """The part of the graph that two layers at the targets depend on."""

    def __init__(self, inputs: Inputs, targets: Tensor | None) -> None:
        super().__init__(inputs, targets)
        nodes = inputs.num_nodes
        loops = torch.arange(nodes, device=inputs.device)
        target = torch.cat([inputs.edge_index[1], loops])
        source = torch.cat([inputs.edge_index[0], loops])
        ones = torch.ones(len(target), dtype=inputs.dtype, device=inputs.device)
        pattern = csr_from_entries(target, source, ones, (nodes, nodes))
        self.outputs = reached_rows(pattern, self.targets, 2)  # of the first and the second layer
        self.reached = reached_rows(pattern, self.targets, 3)[0]
        self.edges = [
            select_columns(select_rows(pattern, rows), columns)
            for rows, columns in (
                (self.outputs[0], self.reached),
                (self.outputs[1], self.outputs[0]),
            )
        ]


class SageSideBySide(_TwoHops):
    network = SageNetwork

    def __init__(self, inputs: Inputs, targets: Tensor | None) -> None:
        super().__init__(inputs, targets)
        nodes, (source, target) = inputs.num_nodes, inputs.edge_index
        share = 1 / torch.bincount(target, minlength=nodes).clamp(min=1).to(inputs.dtype)
        mean = csr_from_entries(target, source, share[target], (nodes, nodes))
        neighbors = propagated(select_rows(mean, self.outputs[0]), inputs.x)
        self.own = SharedFeatures(_rows(inputs.x, self.outputs[0]))
        self.neighbors = SharedFeatures(neighbors)
        second = select_columns(select_rows(mean, self.outputs[1]), self.outputs[0])
        self.mean = FixedMatrix.of(second)
        self.place = torch.searchsorted(self.outputs[0], self.outputs[1])

    def __call__(self, weights: Weights, dropout: float) -> Tensor:
        h = self.neighbors.times(weights["first.lin_l.weight"], 0)
        h = h + self.own.times(weights["first.lin_r.weight"], 0)
        h = dropped((h + weights["first.lin_l.bias"]).relu(), dropout)
        z = torch.einsum("nrh,rch->nrc", h, weights["second.lin_l.weight"])
        out = times(self.mean, z.flatten(1)).view(-1, *z.shape[1:])
        own = torch.einsum("nrh,rch->nrc", h[self.place], weights["second.lin_r.weight"])
        return out + own + weights["second.lin_l.bias"]

    def numbers(self, hidden: int) -> int:
        return len(self.outputs[0]) * hidden


class GatSideBySide(_TwoHops):
    network = GatNetwork

    def __init__(self, inputs: Inputs, targets: Tensor | None) -> None:
        super().__init__(inputs, targets)
        self.features = SharedFeatures(_rows(inputs.x, self.reached))
        self.places = (
            torch.searchsorted(self.reached, self.outputs[0]),
            torch.searchsorted(self.outputs[0], self.outputs[1]),
        )
        self.sums = []
        for edges in self.edges:
            counts = edges.crow_indices().diff().long()
            target = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
            sources = EdgeSums(edges.col_indices().long(), edges.shape[1])
            self.sums.append((sources, EdgeSums(target, edges.shape[0])))

    def __call__(self, weights: Weights, dropout: float) -> Tensor:
        runs = len(weights["first.bias"])
        h = self.features.times(weights["first.lin.weight"], dropout)
        h = self._attend(h.view(len(h), runs, HEADS, -1), weights, 0, dropout)
        h = h.reshape(len(h), runs, -1) + weights["first.bias"]
        h = dropped(functional.elu(h), dropout)
        z = torch.einsum("nrh,rch->nrc", h, weights["second.lin.weight"])
        z = self._attend(z.unsqueeze(2), weights, 1, dropout).squeeze(2)
        return z + weights["second.bias"]

    def _attend(self, x: Tensor, weights: Weights, layer: int, dropout: float) -> Tensor:
        """Attention as in GATConv; ``x`` is of shape (nodes, runs, heads, channels)."""
        sources, targets = self.sums[layer]
        name, (runs, heads) = ("first", "second")[layer], x.shape[1:3]
        # Of shape (channels, nodes, runs · heads): a weight of an edge belongs to the last two.
        x = x.permute(3, 0, 1, 2).flatten(2)
        to_source, to_target = (
            weights[f"{name}.{each}"].squeeze(1).permute(2, 0, 1).flatten(1).unsqueeze(1)
            for each in ("att_src", "att_dst")
        )
        own = x.index_select(1, self.places[layer])
        score = sources.gather((x * to_source).sum(0)) + targets.gather((own * to_target).sum(0))
        score = functional.leaky_relu(score, 0.2)
        score = (score - targets.gathered(targets.largest(score))).exp()
        weight = dropped(score / targets.gather(targets.sum(score)), dropout)
        out = weighted_sums(sources, targets, weight, x)
        return out.view(*out.shape[:2], runs, heads).permute(1, 2, 3, 0)

    def numbers(self, hidden: int) -> int:
        return len(self.sums[0][0].index) * HEADS * 4


NETWORKS: dict[str, type[SideBySide]] = {
    "appnp": AppnpSideBySide,
    "graphsage": SageSideBySide,
    "gat": GatSideBySide,
}


def _rows(x: Tensor, rows: Tensor) -> Tensor:
    return x[rows] if x.layout == torch.strided else select_rows(x, rows)
