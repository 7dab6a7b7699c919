"""The graph convolution E = Â H W + b and a network of them, with the fair gradient.

The fair gradient (RawlsGCN-Grad, the paper's Equation 9) is ∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E; its autograd
form is :mod:`rawlsgcn.nn.fair_gradient`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...nn.fair_gradient import FairMatrix, attach
from .fixed_matrix import FixedMatrix, times
from .random_draws import Dropout, draw_uniform


def graph_convolution(
    h: Tensor | FixedMatrix,
    weight: Tensor,
    propagation: FixedMatrix | None,
    fair: FixedMatrix | None = None,
) -> Tensor:
    """Compute Â (H W), or H W; with ``fair``, W's gradient uses that matrix in place of Â."""
    if propagation is None:
        return times(h, weight)
    if fair is None:
        return times(propagation, times(h, weight))
    out = times(propagation, times(h, weight.detach()))
    matrix = FairMatrix(csr=fair.matrix, csr_transposed=fair.transpose)
    features, transpose = (h, h.t()) if isinstance(h, Tensor) else (h.matrix, h.transpose)
    return attach(out, features, matrix, [weight.t()], [1], h_transposed=transpose)


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
        self,
        h: Tensor | FixedMatrix,
        propagation: FixedMatrix | None,
        fair: FixedMatrix | None = None,
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
        propagation: FixedMatrix | Sequence[FixedMatrix] | None,
        fair: FixedMatrix | Sequence[FixedMatrix] | None = None,
    ) -> Tensor:
        """Compute the class scores.

        Args:
            x: The features, of shape (nodes, features).
            propagation: Â, or a matrix for each layer, the first layer's first; None for none,
                which makes it an MLP.
            fair: The matrix in Â's place in the gradient of the weights, or one for each layer.

        Returns:
            The scores of the nodes that the last layer's matrix has a row for.
        """
        h: Tensor | FixedMatrix = x
        steps = zip(self.layers, self._each(propagation), self._each(fair), strict=True)
        for index, (layer, forward, gradient) in enumerate(steps):
            if index:
                assert isinstance(h, Tensor)
                h = self.dropout(torch.relu(h))
            h = layer(h, forward, gradient)
        assert isinstance(h, Tensor)
        return h

    def _each(
        self, matrices: FixedMatrix | Sequence[FixedMatrix] | None
    ) -> Sequence[FixedMatrix | None]:
        return matrices if isinstance(matrices, Sequence) else [matrices] * len(self.layers)
