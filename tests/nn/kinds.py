"""Every layer that make_fair knows, with the dense formula of its fair gradient."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from nn.dense import adjacency, balanced, with_loops
from torch import Tensor
from torch import nn as torch_nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    MLP,
    GCN2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
    TAGConv,
)

WIDTH = 4


@dataclass(frozen=True)
class Kind:
    """One way to use a layer.

    Attributes:
        make: the layer, from the width of its input to that of its output.
        linear: the part of the layer whose output is the paper's E.
        form: the layer's matrix, self-loops added, before it is balanced: diagonal scalings of it
            (Â, the mean) have the same doubly stochastic form.
        fair: the fair gradients by name, from the layer, its input H, ∂J/∂E, and the form B.
        weighted: whether the layer takes edge weights.
    """

    make: Callable[[int, int], Any]
    linear: Callable[[Any], Any]
    form: Callable[[Any, Tensor], Tensor]
    fair: Callable[[Any, Tensor, Tensor, Tensor], dict[str, Tensor]]
    weighted: bool = True


class Stack(torch_nn.Module):
    """Layers of one kind with tanh between them."""

    def __init__(self, kind: Kind, inputs: int, layers: int) -> None:
        super().__init__()
        self.weighted = kind.weighted
        square = kind.make(WIDTH, WIDTH).__class__.__name__.endswith("GCN2Conv")
        self.first = torch_nn.Linear(inputs, WIDTH) if square else None
        sizes = [WIDTH if square else inputs, *[WIDTH] * layers]
        self.convs = torch_nn.ModuleList(kind.make(a, b) for a, b in itertools.pairwise(sizes))

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        x = x if self.first is None else self.first(x)
        start = x
        for conv in self.convs:
            weight = {"edge_weight": edge_weight} if self.weighted else {}
            before = (start,) if self.first is not None else ()
            x = conv(torch.tanh(x), *before, edge_index, **weight)
        return x


def itself(layer: Any) -> Any:
    return layer


def loops(_: Any, A: Tensor) -> Tensor:
    return with_loops(A)


def one(name: str) -> Callable[..., dict[str, Tensor]]:
    """∂J/∂W = (∂J/∂E)ᵀ B H for a layer with one weight under the matrix."""
    return lambda layer, H, G, B: {name: G.t() @ B @ H}


def powers(layer: Any, H: Tensor, G: Tensor, B: Tensor) -> dict[str, Tensor]:
    return {
        f"lins.{k}.weight": G.t() @ torch.matrix_power(B, k) @ H for k in range(len(layer.lins))
    }


def shared(layer: Any, H: Tensor, G: Tensor, B: Tensor) -> dict[str, Tensor]:
    """GCNII with one weight: β ((1-α) B H + α H₀)ᵀ G; the test keeps H₀ on the layer."""
    mixed = (1 - layer.alpha) * B @ H + layer.alpha * layer.seen_initial
    return {"weight1": layer.beta * mixed.t() @ G}


def unshared(layer: Any, H: Tensor, G: Tensor, B: Tensor) -> dict[str, Tensor]:
    return {"weight1": layer.beta * (1 - layer.alpha) * (B @ H).t() @ G}


def first(layer: Any) -> Any:
    if isinstance(layer.nn, MLP):
        return layer.nn.lins[0]
    return layer.nn[0] if isinstance(layer.nn, torch_nn.Sequential) else layer.nn


def sequential(inputs: int, outputs: int) -> torch_nn.Sequential:
    return torch_nn.Sequential(
        torch_nn.Linear(inputs, 5), torch_nn.Tanh(), torch_nn.Linear(5, outputs)
    )


def isomorphism(layer: Any, A: Tensor) -> Tensor:
    return A + (1 + layer.eps.detach()) * torch.eye(len(A), dtype=A.dtype)


def gin(network: Callable[[int, int], Any], name: str, **options: Any) -> Kind:
    def make(inputs: int, outputs: int) -> GINConv:
        return GINConv(network(inputs, outputs), **options)

    return Kind(make, first, isomorphism, one(name), weighted=False)


KINDS = {
    "GCN": Kind(GCNConv, itself, loops, one("lin.weight")),
    "GCN, improved, no bias": Kind(
        lambda a, b: GCNConv(a, b, improved=True, bias=False),
        itself,
        lambda _, A: with_loops(A, 2.0),
        one("lin.weight"),
    ),
    "GCN, no loops": Kind(
        lambda a, b: GCNConv(a, b, add_self_loops=False), itself, loops, one("lin.weight")
    ),
    "GCN, not normalised": Kind(
        lambda a, b: GCNConv(a, b, normalize=False), itself, loops, one("lin.weight")
    ),
    "GCN, lazy and cached": Kind(
        lambda a, b: GCNConv(-1, b, cached=True), itself, loops, one("lin.weight")
    ),
    "SAGE": Kind(SAGEConv, lambda c: c.lin_l, loops, one("lin_l.weight"), weighted=False),
    "SAGE, sum, normalised": Kind(
        lambda a, b: SAGEConv(a, b, aggr="sum", normalize=True),
        lambda c: c.lin_l,
        loops,
        one("lin_l.weight"),
        weighted=False,
    ),
    "SAGE, lazy, no root": Kind(
        lambda a, b: SAGEConv(-1, b, root_weight=False, bias=False),
        lambda c: c.lin_l,
        loops,
        one("lin_l.weight"),
        weighted=False,
    ),
    "GraphConv": Kind(GraphConv, lambda c: c.lin_rel, loops, one("lin_rel.weight")),
    "GraphConv, mean": Kind(
        lambda a, b: GraphConv(a, b, aggr="mean"), lambda c: c.lin_rel, loops, one("lin_rel.weight")
    ),
    "GIN, MLP": gin(lambda a, b: MLP([a, 5, b], norm=None, act="tanh"), "nn.lins.0.weight"),
    "GIN, Sequential, learned eps": gin(sequential, "nn.0.weight", eps=0.3, train_eps=True),
    "GIN, Linear": gin(torch_nn.Linear, "nn.weight", eps=-0.2),
    "SG": Kind(lambda a, b: SGConv(a, b, K=1), lambda c: c.lin, loops, one("lin.weight")),
    "SG, three hops": Kind(
        lambda a, b: SGConv(a, b, K=3),
        lambda c: c.lin,
        loops,
        lambda layer, H, G, B: {"lin.weight": G.t() @ B @ B @ B @ H},
    ),
    "TAG": Kind(lambda a, b: TAGConv(a, b, K=2), itself, loops, powers),
    "GCNII": Kind(lambda a, b: GCN2Conv(b, 0.2, 0.5, 3), itself, loops, shared),
    "GCNII, two weights": Kind(
        lambda a, b: GCN2Conv(b, 0.2, 0.5, 3, shared_weights=False), itself, loops, unshared
    ),
}


def form(kind: Kind, layer: Any, graph: Data) -> Tensor:
    """The doubly stochastic form of the layer's matrix on ``graph``."""
    graph = graph if kind.weighted else Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    return balanced(kind.form(layer, adjacency(graph)))
