"""Fast operations for training many runs side by side: products, sums over edges, dropout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from rawlsgcn._core.sparse import SparseProduct, csr_entries, csr_from_entries


def dropped(x: Tensor, p: float) -> Tensor:
    """Dropout, as ``torch.nn.functional.dropout``; on the CPU ten times as fast.

    There the probability is met to 1 part in 65,536, and the scale is that of the met one.
    """
    if not p:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, p)
    threshold = round(p * 65536) - 32768
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.int16)[: x.numel()].view(x.shape) >= threshold
    return x * kept.to(x.dtype).mul_(65536 / (32768 - threshold))


class SharedFeatures:
    """The features that all runs share, dense or CSR.

    Args:
        x: Features of shape (nodes, features).
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x
        if x.layout == torch.strided:
            return
        self.matrix = csr_from_entries(*csr_entries(x), x.shape)
        row, column, value = csr_entries(self.matrix)
        self.order = (column * x.shape[0] + row).argsort()
        self.transpose = csr_from_entries(column, row, value, (x.shape[1], x.shape[0]))
        self.value = self.matrix.values().clone()
        self._forward, self._backward = SparseProduct(self.matrix), SparseProduct(self.transpose)

    def times(self, weight: Tensor, dropout: float) -> Tensor:
        """Compute x @ weight[r].T of every run r.

        Args:
            weight: Of shape (runs, hidden, features).
            dropout: The probability with which a feature of a node is set to zero, the same ones
                in all runs.

        Returns:
            A tensor of shape (nodes, runs, hidden).
        """
        runs, hidden, features = weight.shape
        wide = self._product(weight.reshape(runs * hidden, features).t(), dropout)
        return wide.view(-1, runs, hidden)

    def _product(self, weight: Tensor, dropout: float) -> Tensor:
        if self.x.layout == torch.strided:
            return dropped(self.x, dropout) @ weight
        value = dropped(self.value, dropout)
        out: Tensor = _Product.apply(self, value, weight)  # type: ignore[no-untyped-call]
        return out

    def forward(self, value: Tensor, right: Tensor) -> Tensor:
        """The product of the matrix with these values."""
        self.matrix.values().copy_(value)
        out = right.new_empty(self.matrix.shape[0], right.shape[1])
        return self._forward(right.contiguous(), out)

    def backward(self, value: Tensor, right: Tensor) -> Tensor:
        """The product of the transpose with these values."""
        torch.index_select(value, 0, self.order, out=self.transpose.values())
        out = right.new_empty(self.matrix.shape[1], right.shape[1])
        return self._backward(right.contiguous(), out)


class _Product(torch.autograd.Function):
    """A sparse matrix, of which only the stored values change, times a tensor with a gradient."""

    @staticmethod
    def forward(ctx: Any, features: SharedFeatures, value: Tensor, weight: Tensor) -> Tensor:
        ctx.features, ctx.value = features, value
        return features.forward(value, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.features.backward(ctx.value, grad)


class EdgeSums:
    """Gather rows of nodes to edges, and sum rows of edges to nodes.

    Args:
        index: The node of each edge.
        nodes: The number of nodes.
    """

    def __init__(self, index: Tensor, nodes: int) -> None:
        self.index, self.nodes = index, nodes
        edges = torch.arange(len(index), device=index.device)
        ones = torch.ones(len(index), device=index.device)
        self._sum = SparseProduct(csr_from_entries(index, edges, ones, (nodes, len(index))))
        self._pick = SparseProduct(csr_from_entries(edges, index, ones, (len(index), nodes)))

    def gather(self, x: Tensor) -> Tensor:
        """x[index], of shape (edges, ...)."""
        out: Tensor = _Gather.apply(self, x)  # type: ignore[no-untyped-call]
        return out

    def sum(self, x: Tensor) -> Tensor:
        """The sums of shape (nodes, ...) of rows of edges."""
        out: Tensor = _Sum.apply(self, x)  # type: ignore[no-untyped-call]
        return out

    def largest(self, x: Tensor) -> Tensor:
        """The largest value of each node's edges, without a gradient."""
        out = x.new_full((self.nodes, *x.shape[1:]), -torch.inf)
        index = self.index.view(-1, *[1] * (x.dim() - 1)).expand_as(x)
        return out.scatter_reduce_(0, index, x.detach(), "amax")

    def gathered(self, x: Tensor) -> Tensor:
        """:meth:`gather` without a gradient."""
        if x.device.type != "cpu" or x[0].numel() < 16:
            return x.index_select(0, self.index)
        # A product with one entry in each row is several times as fast for rows as short as these.
        out = x.new_empty(len(self.index), *x.shape[1:])
        self._pick(x.contiguous().flatten(1), out.flatten(1))
        return out

    def summed(self, x: Tensor) -> Tensor:
        """:meth:`sum` without a gradient."""
        flat = x.reshape(len(x), -1).contiguous()
        out = flat.new_empty(self.nodes, flat.shape[1])
        return self._sum(flat, out).view(self.nodes, *x.shape[1:])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: EdgeSums, x: Tensor) -> Tensor:
        ctx.edges = edges
        return edges.gathered(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.edges.summed(grad)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: EdgeSums, x: Tensor) -> Tensor:
        ctx.edges = edges
        return edges.summed(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.edges.gathered(grad)


def weighted_sums(sources: EdgeSums, targets: EdgeSums, weight: Tensor, x: Tensor) -> Tensor:
    """Sum the rows of the source nodes, times a weight of the edge, at the target nodes.

    Args:
        sources: The source of each edge.
        targets: The target of each edge.
        weight: Of shape (edges, k).
        x: Of shape (channels, sources, k).

    Returns:
        A tensor of shape (channels, targets, k).
    """
    out: Tensor = _WeightedSums.apply(sources, targets, weight, x)  # type: ignore[no-untyped-call]
    return out


class _WeightedSums(torch.autograd.Function):
    """One channel after another: the messages of all of them would not fit into the caches."""

    @staticmethod
    def forward(
        ctx: Any, sources: EdgeSums, targets: EdgeSums, weight: Tensor, x: Tensor
    ) -> Tensor:
        ctx.sources, ctx.targets = sources, targets
        ctx.save_for_backward(weight, x)
        return torch.stack([targets.summed(sources.gathered(each).mul_(weight)) for each in x])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, Tensor]:
        weight, x = ctx.saved_tensors
        to_weight, to_x = torch.zeros_like(weight), []
        for each, up in zip(x, grad.contiguous(), strict=True):
            message = ctx.targets.gathered(up)
            to_weight.addcmul_(message, ctx.sources.gathered(each))
            to_x.append(ctx.sources.summed(message.mul_(weight)))
        return None, None, to_weight, torch.stack(to_x)
