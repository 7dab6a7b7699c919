"""The graph convolution E = Â H W + b and a network of them, with the fair gradient where asked.

The fair gradient (RawlsGCN-Grad, the paper's Equation 9) is ∂J/∂W = Hᵀ Â_DSᵀ ∂J/∂E; its autograd
form is :mod:`rawlsgcn.nn.fair_gradient`.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from ...nn.fair_gradient import FairMatrix, attach
from .dropout import Dropout
from .fixed_matrix import FixedMatrix, times


def graph_convolution(
    h: Tensor | FixedMatrix,
    weight: Tensor,
    propagation: FixedMatrix,
    fair: FixedMatrix | None = None,
) -> Tensor:
    """Compute Â (H W); with ``fair``, W's gradient uses that matrix in place of Â."""
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
        """Uniform in ±1/√(d_out), drawn on the CPU so that a seed means the same anywhere."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        with torch.no_grad():
            for parameter in (self.weight, self.bias):
                draw = torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator)
                parameter.copy_(draw)

    def forward(
        self, h: Tensor | FixedMatrix, propagation: FixedMatrix, fair: FixedMatrix | None = None
    ) -> Tensor:
        return graph_convolution(h, self.weight, propagation, fair) + self.bias


class GraphConvolutionalNetwork(nn.Module):
    """L graph convolutions with ReLU and dropout between them: the paper's backbone.

    Dropout draws from ``random``, or from torch's global generator where there is none.
    """

    def __init__(
        self, sizes: list[int], dropout: float, random: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GraphConvolution(a, b) for a, b in itertools.pairwise(sizes))
        self.dropout = Dropout(dropout, random)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]

    def forward(
        self, x: Tensor | FixedMatrix, propagation: FixedMatrix, fair: FixedMatrix | None = None
    ) -> Tensor:
        h: Tensor | FixedMatrix = x
        for index, layer in enumerate(self.layers):
            if index:
                assert isinstance(h, Tensor)
                h = self.dropout(torch.relu(h))
            h = layer(h, propagation, fair)
        assert isinstance(h, Tensor)
        return h
