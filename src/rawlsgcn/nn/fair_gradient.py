r"""The fair gradient itself: a pass-through whose backward also hands weights their gradient.

A layer computes its output from *detached* weights, so that autograd gives them nothing, and sends
it through :func:`attach`, which gives them

.. math:: \frac{\partial J}{\partial W_k} = \Big(\frac{\partial J}{\partial E}\Big)^\top B^k H

for E = P^k H W_kᵀ, with the doubly stochastic form B in place of P (the paper's Equation 9; W as
torch stores it, outputs first). It happens inside the backward pass, so any optimiser, gradient
scaler and DistributedDataParallel see it as they see any other gradient, and the forward pass
costs nothing more than a copy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class FairMatrix(NamedTuple):
    """B, by its entries at the edges, or whole if it is symmetric.

    Attributes:
        source: (E,) the node a message comes from, B's column.
        target: (E,) the node it goes to, B's row.
        edge: (E,) the entries at the edges.
        loop: (targets,) the diagonal, or None where the edges hold what there is of it. Target i
            and source i are then the same node, as in torch_geometric's sampled blocks.
        csr: in place of the others, a symmetric B as a sparse matrix: products with it are faster
            and need no memory for the messages.
    """

    source: Tensor | None = None
    target: Tensor | None = None
    edge: Tensor | None = None
    loop: Tensor | None = None
    csr: Tensor | None = None


def attach(
    out: Tensor,
    h: Tensor,
    matrix: FairMatrix,
    weights: list[Tensor],
    powers: list[int],
    node_dim: int = -2,
) -> Tensor:
    """``out`` as it is; each weight (outputs, inputs) learns from that power of B times H."""
    return _Attach.apply(  # type: ignore[no-untyped-call,no-any-return]
        out, h.detach(), *matrix, tuple(powers), node_dim, h.layout != torch.strided, *weights
    )


def redirect(
    out: Tensor, h: Tensor, matrix: FairMatrix, coefficients: list[float], node_dim: int = -2
) -> Tensor:
    r"""``out`` as it is; ``h`` receives :math:`\sum_k c_k (B^\top)^k\, \partial J / \partial E`."""
    return _Redirect.apply(  # type: ignore[no-untyped-call,no-any-return]
        out, h, *matrix, tuple(coefficients), node_dim
    )


class _Attach(torch.autograd.Function):
    """The identity of its first argument, with gradients for the weights at the end."""

    @staticmethod
    def forward(out: Tensor, *_: Any) -> Tensor:
        # A copy, since torch lets nobody change a view that a custom function has returned.
        return out.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, h, source, target, edge, loop, csr, *settings = inputs
        ctx.powers, ctx.node_dim, ctx.sparse, *weights = settings
        ctx.dtype, ctx.widths = weights[0].dtype, weights[0].shape
        ctx.save_for_backward(h, source, target, edge, loop, csr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        h, *entries = ctx.saved_tensors
        matrix, dim = FairMatrix(*entries), ctx.node_dim
        outputs, inputs = ctx.widths
        # The narrower of the two travels along the edges; sparse features stay where they are.
        back = outputs <= inputs or ctx.sparse
        answers: dict[int, Tensor] = {}
        with torch.autocast(grad.device.type, enabled=False):
            left, right = _precise(grad, ctx.dtype), _precise(h, ctx.dtype)
            for power in range(max(ctx.powers) + 1):
                if power and back:
                    left = _spread(left, matrix, h.shape[dim], dim, back=True)
                elif power:
                    right = _spread(right, matrix, grad.shape[dim], dim, back=False)
                if power in ctx.powers:
                    if ctx.sparse:
                        product = (right.t() @ left).t()
                    else:
                        product = left.reshape(-1, outputs).t() @ right.reshape(-1, inputs)
                    answers[power] = product.to(ctx.dtype)
        return (grad, *[None] * 9, *(answers[power] for power in ctx.powers))


class _Redirect(torch.autograd.Function):
    """The identity of its first argument, with the gradient for the second."""

    @staticmethod
    def forward(out: Tensor, *_: Any) -> Tensor:
        return out.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, h, source, target, edge, loop, csr, ctx.coefficients, ctx.node_dim = inputs
        ctx.dtype = h.dtype
        ctx.save_for_backward(source, target, edge, loop, csr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        matrix, dim = FairMatrix(*ctx.saved_tensors), ctx.node_dim
        with torch.autocast(grad.device.type, enabled=False):
            pulled = _precise(grad, ctx.dtype)
            total = ctx.coefficients[0] * pulled
            for coefficient in ctx.coefficients[1:]:
                pulled = _spread(pulled, matrix, grad.shape[dim], dim, back=True)
                total = total + coefficient * pulled
        return (grad, total.to(ctx.dtype), *[None] * 7)


def _precise(values: Tensor, dtype: torch.dtype) -> Tensor:
    """In the type of what learns, and at least float32: sums over hubs need the digits."""
    return values.to(torch.promote_types(dtype, torch.float32))


def _spread(values: Tensor, matrix: FairMatrix, nodes: int, dim: int, back: bool) -> Tensor:
    """B times ``values`` (from sources to targets), or ``back``: Bᵀ times them."""
    if matrix.csr is not None:
        first = values.movedim(dim, 0)
        product = matrix.csr.to(values.dtype) @ first.reshape(len(first), -1)
        return product.view(first.shape).movedim(0, dim)
    source, target, edge, loop, _ = matrix
    assert source is not None
    assert target is not None
    assert edge is not None
    origin, goal = (target, source) if back else (source, target)
    shape = [1] * values.dim()
    shape[dim] = -1
    sums = list(values.shape)
    sums[dim] = nodes
    messages = values.index_select(dim, origin) * edge.to(values.dtype).view(shape)
    spread = values.new_zeros(sums).index_add(dim, goal, messages)
    if loop is None:
        return spread
    count = loop.shape[0]
    own = values.narrow(dim, 0, count) * loop.to(values.dtype).view(shape)
    if count == nodes:
        return spread + own
    rest = spread.narrow(dim, count, nodes - count)
    return torch.cat([spread.narrow(dim, 0, count) + own, rest], dim)
