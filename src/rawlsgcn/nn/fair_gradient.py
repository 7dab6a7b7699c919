r"""The fair gradient (RawlsGCN-Grad) inside autograd: the one form that all layers and methods use.

The ordinary gradient of the weight of E = P H Wᵀ is (∂J/∂E)ᵀ P H. By the paper's Theorem 1 it is a
sum over the nodes' influences, each weighted by the node's degree in P. With the doubly stochastic
form B in place of P in this one product every node has the weight one (Equation 9):

.. math:: \frac{\partial J}{\partial W_k} = \Big(\frac{\partial J}{\partial E}\Big)^\top B^k H

for E = P^k H W_kᵀ, with W as torch stores it, outputs first.

A layer computes its output from *detached* weights, so that autograd computes no gradient for them,
and passes it through :func:`attach`, which adds the fair one. That happens inside the backward
pass, so any optimizer, gradient scaler and DistributedDataParallel get it as any other gradient,
and the forward pass costs no more than a copy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class FairMatrix(NamedTuple):
    """B, by its entries at the edges or as a sparse matrix.

    Attributes:
        source: (E,) the node a message comes from, B's column.
        target: (E,) the node it goes to, B's row.
        edge: (E,) the entries at the edges.
        loop: (targets,) the diagonal, or None where the edges hold all of it. Target i and source i
            are then the same node, as in torch_geometric's sampled blocks.
        csr: B as a CSR matrix, in place of the others: products with it are faster and need no
            memory for the messages.
        csr_transposed: Bᵀ as a CSR matrix; ``csr`` itself for a symmetric B.
    """

    source: Tensor | None = None
    target: Tensor | None = None
    edge: Tensor | None = None
    loop: Tensor | None = None
    csr: Tensor | None = None
    csr_transposed: Tensor | None = None


def attach(
    out: Tensor,
    h: Tensor,
    matrix: FairMatrix,
    weights: list[Tensor],
    powers: list[int],
    node_dim: int = -2,
    h_transposed: Tensor | None = None,
) -> Tensor:
    r"""Return a copy of ``out`` whose backward pass computes the fair gradient of the weights.

    ``out`` is computed from an input H and detached weights W_k, each (outputs, inputs), with the
    k-th of the ``powers`` of B. With Hᵀ (inputs, nodes) given too, it is the gradient of E that is
    multiplied by powers of Bᵀ, not H by powers of B.
    """
    if h_transposed is None and h.layout != torch.strided:
        h_transposed = h.t()
    features = (h.detach(), None) if h_transposed is None else (None, h_transposed.detach())
    return _Attach.apply(  # type: ignore[no-untyped-call,no-any-return]
        out, *features, *matrix, tuple(powers), node_dim, *weights
    )


def redirect(
    out: Tensor, h: Tensor, matrix: FairMatrix, coefficients: list[float], node_dim: int = -2
) -> Tensor:
    r"""Return a copy of ``out``, of a detached H, whose backward pass gives H a polynomial of Bᵀ.

    .. math:: \frac{\partial J}{\partial H} = \sum_k c_k (B^\top)^k \frac{\partial J}{\partial E}
    """
    return _Redirect.apply(  # type: ignore[no-untyped-call,no-any-return]
        out, None, None, *matrix, tuple(coefficients), node_dim, h
    )


class _Attach(torch.autograd.Function):
    """The identity of its first argument, with gradients for the weights at the end."""

    @staticmethod
    def forward(out: Tensor, *_: Any) -> Tensor:
        # A copy, since torch does not allow to change a view that a custom function has returned.
        return out.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.numbers, ctx.node_dim, learning, *_ = inputs[9:]
        ctx.dtype, ctx.shape = learning.dtype, learning.shape
        ctx.save_for_backward(*inputs[1:9])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        h, h_transposed, *entries = ctx.saved_tensors
        matrix, dim, (outputs, inputs) = FairMatrix(*entries), ctx.node_dim, ctx.shape
        # The narrower of the two is multiplied by B.
        pull = h is None or outputs <= inputs
        sources = h_transposed.shape[1] if h is None else h.shape[dim]
        gradients: dict[int, Tensor] = {}
        with torch.autocast(grad.device.type, enabled=False):
            left = _precise(grad, ctx.dtype)
            right = _precise(h_transposed if h is None else h, ctx.dtype)
            for power in range(max(ctx.numbers) + 1):
                if power and pull:
                    left = _multiply(left, matrix, sources, dim, transposed=True)
                elif power:
                    right = _multiply(right, matrix, grad.shape[dim], dim, transposed=False)
                if power in ctx.numbers:
                    if h is None:
                        product = (right @ left).t()
                    else:
                        product = left.reshape(-1, outputs).t() @ right.reshape(-1, inputs)
                    gradients[power] = product.to(ctx.dtype)
        return (grad, *[None] * 10, *(gradients[power] for power in ctx.numbers))


class _Redirect(_Attach):
    """The identity of its first argument, with the gradient for H at the end."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        matrix = FairMatrix(*ctx.saved_tensors[2:])
        with torch.autocast(grad.device.type, enabled=False):
            pulled = _precise(grad, ctx.dtype)
            total = ctx.numbers[0] * pulled
            for coefficient in ctx.numbers[1:]:
                nodes = grad.shape[ctx.node_dim]
                pulled = _multiply(pulled, matrix, nodes, ctx.node_dim, transposed=True)
                total = total + coefficient * pulled
        return (grad, *[None] * 10, total.to(ctx.dtype))


def _precise(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast to the type of the weights, and at least float32: sums over hubs need the digits."""
    return values.to(torch.promote_types(dtype, torch.float32))


def _multiply(values: Tensor, matrix: FairMatrix, nodes: int, dim: int, transposed: bool) -> Tensor:
    """Return B times ``values``, or Bᵀ times them, along the nodes' dimension."""
    csr = matrix.csr_transposed if transposed else matrix.csr
    if csr is not None:
        first = values.movedim(dim, 0)
        product = csr.to(values.dtype) @ first.reshape(len(first), -1)
        return product.view(len(product), *first.shape[1:]).movedim(0, dim)
    source, target, edge, loop, *_ = matrix
    assert source is not None
    assert target is not None
    assert edge is not None
    origin, goal = (target, source) if transposed else (source, target)
    shape = [1] * values.dim()
    shape[dim] = -1
    sums = list(values.shape)
    sums[dim] = nodes
    messages = values.index_select(dim, origin) * edge.to(values.dtype).view(shape)
    product = values.new_zeros(sums).index_add(dim, goal, messages)
    if loop is None:
        return product
    count = loop.shape[0]
    own = values.narrow(dim, 0, count) * loop.to(values.dtype).view(shape)
    if count == nodes:
        return product + own
    rest = product.narrow(dim, count, nodes - count)
    return torch.cat([product.narrow(dim, 0, count) + own, rest], dim)
