r"""Sampled blocks: for each layer a matrix from the nodes it reads to the nodes it computes.

Layer l's block has the row (1 + c_v entries: the loop, then what was drawn) of every node whose
output the next layer reads. Each layer draws its rows again. A gradient is a sum over paths
v ← u ← w … of products of one entry of each layer's matrix; with independent draws the expectation
of the product is the product of the expectations, so that for linear layers and a loss that is
linear in the logits the expected sampled gradient is the whole graph's, at any depth. (Were one
draw of a row used by all layers, paths that return to a node would make it biased from the third
layer on; with two layers they cannot: v ← v takes the loop, which is not drawn.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._core.sparse import csr_tensor
from ...methods._ops.fixed_matrix import FixedMatrix
from ...sampling import Adjacency, Factors, Neighborhoods
from ...sampling.neighbor_drawing import Hop

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Block:
    """One layer's sampled pattern and its transpose's, with the values of each matrix on them."""

    shape: tuple[int, int]
    pattern: tuple[Tensor, Tensor]
    flipped: tuple[Tensor, Tensor]
    values: list[tuple[Tensor, Tensor]]

    def matrix(self, number: int, device: torch.device) -> FixedMatrix:
        """The matrix with the values of this number."""
        ours, theirs = self.values[number]
        matrix = csr_tensor(*self.pattern, ours, self.shape)
        transpose = csr_tensor(*self.flipped, theirs, self.shape[::-1])
        return FixedMatrix(matrix.to(device), transpose.to(device))


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all layers, the first layer's first, and the nodes whose features it reads."""

    nodes: Array
    layers: list[Block]

    def forward(self, device: torch.device) -> list[FixedMatrix]:
        """Each layer's Ŝ."""
        return [block.matrix(0, device) for block in self.layers]

    def fair(self, device: torch.device) -> list[FixedMatrix] | None:
        """Each layer's F̂, or None where the gradient has no matrix of its own."""
        return [block.matrix(1, device) for block in self.layers if len(block.values) > 1] or None


class BlockMaker:
    """Draws blocks from a graph with the entries of its forward and its fair matrix."""

    def __init__(
        self,
        adjacency: Adjacency,
        forward: Factors,
        fair: Factors | None,
        num_neighbors: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.neighborhoods = Neighborhoods(adjacency)
        self._adjacency, self._num_neighbors, self._dtype = adjacency, num_neighbors, dtype
        self._factors = [forward] if fair is None else [forward, fair]

    def make(self, seeds: Array, key: int) -> Blocks:
        """Blocks that end in the ``seeds``, drawn as ``key`` says."""
        sample = self.neighborhoods.sample(seeds, self._num_neighbors, key, redraw=True)
        met = np.cumsum(sample.new)[1:]
        layers = [
            self._block(hop, sample.nodes[:count])
            for hop, count in zip(sample.hops, met, strict=True)
        ]
        return Blocks(sample.nodes, layers[::-1])

    def _block(self, hop: Hop, nodes: Array) -> Block:
        from scipy.sparse import csr_array

        rows = len(hop.drawn)
        crow = np.zeros(rows + 1, dtype=np.int32)
        np.cumsum(hop.drawn + 1, out=crow[1:])
        target, drawn = hop.target, np.arange(len(hop.arc)) + hop.target + 1
        column = np.empty(crow[-1], dtype=np.int32)
        column[crow[:-1]] = np.arange(rows, dtype=np.int32)
        column[drawn] = hop.source
        weight = np.ones(len(column))
        degree = np.diff(self._adjacency.row_start[nodes[:rows, None] + [0, 1]])[:, 0]
        weight[drawn] = (degree / np.maximum(hop.drawn, 1))[target]
        edge_weight = self._adjacency.arc_weights(hop.arc)
        if edge_weight is not None:
            weight[drawn] *= edge_weight
        shape = (rows, len(nodes))
        # A counting sort; its values say where each entry of the transpose comes from.
        order = csr_array((np.arange(len(column), dtype=np.int32), column, crow), shape).tocsc()
        flip = torch.from_numpy(order.data).long()
        ends = nodes[np.repeat(np.arange(rows), hop.drawn + 1)], nodes[column]
        values = []
        for factors in self._factors:
            entries = factors.left[ends[0]] * factors.right[ends[1]] * weight
            ours = torch.from_numpy(entries).to(self._dtype)
            values.append((ours, ours[flip]))
        pattern = torch.from_numpy(crow), torch.from_numpy(column)
        flipped = torch.from_numpy(order.indptr), torch.from_numpy(order.indices)
        return Block(shape, pattern, flipped, values)
