"""The graph convolution E = Â H W + b, and the fair gradient of its weights.

The ordinary gradient of W is Hᵀ Âᵀ ∂J/∂E. By the paper's Theorem 1 it is a sum over the nodes'
influences, each weighted by the node's degree in Â. Replacing Â by its doubly stochastic form in
this one product sets every weight to one (RawlsGCN-Grad, Equation 9):

    ∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E.

It happens inside the backward pass, so that any optimizer, any training loop and
DistributedDataParallel use it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .dropout import Dropout
from .fixed_matrix import FixedMatrix
from .initial_weights import draw_uniform


class _GraphConvolution(torch.autograd.Function):
    """Â (H W), whose backward gives H its true gradient and W the fair one if there is one."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor | FixedMatrix,
        weight: Tensor,
        propagation: FixedMatrix,
        fair: FixedMatrix | None,
    ) -> Tensor:
        ctx.propagation, ctx.fair = propagation, fair
        ctx.fixed = h if isinstance(h, FixedMatrix) else None
        ctx.save_for_backward(*([weight] if isinstance(h, FixedMatrix) else [weight, h]))
        return propagation @ (h @ weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        weight, *rest = ctx.saved_tensors
        needs_h, needs_weight = ctx.needs_input_grad[:2]
        through = ctx.propagation.T @ grad if needs_h or ctx.fair is None else None
        grad_h = grad_weight = None
        if needs_h:
            assert through is not None
            grad_h = through @ weight.t()
        if needs_weight:
            pulled = through if ctx.fair is None else ctx.fair.T @ grad
            grad_weight = (rest[0].t() if rest else ctx.fixed.T) @ pulled
        return grad_h, grad_weight, None, None


def graph_convolution(
    h: Tensor | FixedMatrix,
    weight: Tensor,
    propagation: FixedMatrix,
    fair: FixedMatrix | None = None,
) -> Tensor:
    """Â (H W); with ``fair``, W's gradient uses that matrix in Â's place."""
    out: Tensor = _GraphConvolution.apply(h, weight, propagation, fair)  # type: ignore[no-untyped-call]
    return out


class GraphConvolution(nn.Module):
    """One layer: E = Â H W + b, with the initial values of Kipf and Welling's code."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weight and bias uniformly from ±1/√(d_out)."""
        draw_uniform(self, generator)

    def forward(
        self, h: Tensor | FixedMatrix, propagation: FixedMatrix, fair: FixedMatrix | None = None
    ) -> Tensor:
        return graph_convolution(h, self.weight, propagation, fair) + self.bias


class GraphConvolutionalNetwork(nn.Module):
    """L graph convolutions with ReLU and dropout between them: the paper's backbone.

    Args:
        sizes: The widths from the features over the hidden layers to the classes.
        dropout: The probability with which an entry of a hidden layer is set to zero.
        random: The generator of dropout; by default torch's global one.
    """

    def __init__(
        self, sizes: list[int], dropout: float, random: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GraphConvolution(a, b) for a, b in itertools.pairwise(sizes))
        self.dropout = Dropout(dropout, random)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights and biases uniformly from ±1/√(d_out).

        Args:
            generator: A generator on the CPU; by default torch's global one.
        """
        draw_uniform(self, generator)

    def forward(
        self,
        x: Tensor | FixedMatrix,
        propagation: FixedMatrix | Sequence[FixedMatrix],
        fair: FixedMatrix | Sequence[FixedMatrix] | None = None,
    ) -> Tensor:
        """Compute the class scores.

        Args:
            x: The features, of shape (nodes, features).
            propagation: Â, or a matrix for each layer, the first layer's first.
            fair: The matrix in Â's place in the gradient of the weights, or one for each layer.

        Returns:
            The scores of the nodes that the last layer's matrix has a row for.
        """
        h: Tensor | FixedMatrix = x
        for index, layer in enumerate(self.layers):
            if index:
                assert isinstance(h, Tensor)
                h = self.dropout(torch.relu(h))
            h = layer(h, _of_layer(propagation, index), _of_layer(fair, index))
        assert isinstance(h, Tensor)
        return h


M = TypeVar("M", FixedMatrix, FixedMatrix | None)


def _of_layer(matrices: M | Sequence[FixedMatrix], index: int) -> M | FixedMatrix:
    return matrices[index] if isinstance(matrices, Sequence) else matrices
