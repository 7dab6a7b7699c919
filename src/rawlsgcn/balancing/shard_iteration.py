"""The symmetric iteration on one process's rows of A + I, which lie in shards.

Every process holds its piece of each vector; only the vector to be multiplied is held in full. The
diagonal of A + I is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed

from .._core.kernels import CSRArrays
from .._core.sparse import Array, array_module, as_tensor, dot, empty_array
from ..graphs.shards.arc_blocks import ArcBlock, ArcBlocks
from .iterations import Symmetric
from .sparse_matrix import Product
from .vector_updates import NUM_VECTORS

_CUDA_BLOCK = 1 << 26


class ShardIteration(Symmetric):
    """x ← 2 x / (1 + r) on this process's piece of x.

    Args:
        arcs: The arcs of the rows.
        cuts: The first row of each process, and the number of nodes.
        device: The device of the vectors.
    """

    def __init__(self, arcs: ArcBlocks, cuts: list[int], device: torch.device) -> None:
        self._arcs, self._cuts, self._device, self._factor = arcs, cuts, device, 1.0
        self._library, self.size = array_module(device), arcs.last - arcs.first
        self._products: list[Product] = []
        self._full = self._own = self._gathered = torch.empty(0, dtype=torch.float64, device=device)
        if len(cuts) > 2:
            longest = max(b - a for a, b in pairwise(cuts))
            self._full = as_tensor(empty_array((cuts[-1],), device))
            self._own = torch.zeros(longest, dtype=torch.float64, device=device)
            self._gathered = self._own.new_zeros(len(cuts) - 1, longest)

    @property
    def held_bytes(self) -> int:
        """Memory of x in full and of its pieces, of row starts and of the descent's vectors."""
        exchanged = self._full.nbytes + self._gathered.nbytes + self._own.nbytes
        return exchanged + (4 + 8 * NUM_VECTORS) * self.size

    def start(self, x: Array, y: Array) -> list[float]:
        """As in one process: x_i solves x² + o_i s x = 1, with o the row sums of A."""
        ones = as_tensor(empty_array((self._cuts[-1],), self._device)).fill_(1.0)
        self._multiply_rows(ones, as_tensor(y))  # nothing is exchanged
        y -= 1
        total, nodes = self.totals(float(y.sum()))[0], self._cuts[-1]
        mean = math.sqrt(nodes / total) if total else 0.0
        for _ in range(8 if total else 0):
            self._write_roots(y, mean, x)
            mean = math.sqrt(mean * self.totals(dot(y, x))[0] / total)
        self._write_roots(y, mean, x)
        factor = math.sqrt(nodes / self.totals(self.product(as_tensor(x), as_tensor(y)))[0])
        x *= factor
        y *= factor
        return []

    def _write_roots(self, outer: Array, mean: float, x: Array) -> None:
        linear = outer * mean
        x[:] = 2 / (linear + self._library.sqrt(linear * linear + 4))

    def product(self, p: Tensor, q: Tensor) -> float:
        if len(self._cuts) == 2:
            return self._multiply_rows(p, q)
        self._own[: len(p)] = p
        distributed.all_gather(list(self._gathered.unbind()), self._own)
        for piece, (a, b) in zip(self._gathered, pairwise(self._cuts), strict=True):
            self._full[a:b] = piece[: b - a]
        return self._multiply_rows(self._full, q)

    def totals(self, *numbers: float) -> Sequence[float]:
        return _reduced(numbers, distributed.ReduceOp.SUM)

    def maxima(self, *numbers: float) -> Sequence[float]:
        return _reduced(numbers, distributed.ReduceOp.MAX)

    def _multiply_rows(self, x: Tensor, out: Tensor) -> float:
        """Write the rows of (A + I) x, given all of x; the product of both."""
        own, total = x[self._arcs.first : self._arcs.last], 0.0
        for number, block in enumerate(self._arcs):
            rows = slice(block.first, block.last)
            product = self._products[number] if number < len(self._products) else self._made(block)
            total += product(x, out[rows], own[rows])
        return total

    def _made(self, block: ArcBlock) -> Product:
        """The product with a block, which is kept if the block is."""
        starts = block.row_start - block.row_start[0]
        starts = starts.int() if len(block.column) < 2**31 else starts
        stored = CSRArrays(starts, block.column, block.weight)
        product = Product(stored, True, self._cuts[-1], _CUDA_BLOCK)
        if self._arcs.kept:
            self._products.append(product)
        return product


def _reduced(numbers: Sequence[float], how: Any) -> Sequence[float]:
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return numbers
    on_gpu = distributed.get_backend() == "nccl"
    values = torch.tensor(numbers, dtype=torch.float64, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(values, how)
    reduced: list[float] = values.tolist()
    return reduced
