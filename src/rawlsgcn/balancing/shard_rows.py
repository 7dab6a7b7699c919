"""One process's rows of A + I in shards: products with x, of which every process holds a piece."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, distributed

from .._core.kernels import CSRArrays, Multiplication, kernels
from .._core.sparse import as_array, as_tensor, dot, empty_array
from ..graphs.shards.arc_blocks import ArcBlock, ArcBlocks
from .sparse_matrix import BlockProduct

#: Nonzeros of a product's block, whose values are one array of ones for all blocks.
BLOCK, _CUDA_BLOCK = 1 << 19, 1 << 26


class ShardRows:
    """This process's rows of A + I, and the exchange of x between the processes.

    Args:
        arcs: The arcs of the rows.
        cuts: The first row of each process, and the number of nodes.
        device: The device of the vectors.
    """

    def __init__(self, arcs: ArcBlocks, cuts: list[int], device: torch.device) -> None:
        self.arcs, self.cuts, self.device = arcs, cuts, device
        self._known: list[Multiplication | list[ArcBlock]] = []
        self._ones = torch.ones(0, dtype=torch.float64, device=device)
        self._full = self._own = self._gathered = torch.empty(0, dtype=torch.float64, device=device)
        if len(cuts) > 2:
            longest = max(b - a for a, b in pairwise(cuts))
            self._full = as_tensor(empty_array((cuts[-1],), device))
            self._own = torch.zeros(longest, dtype=torch.float64, device=device)
            self._gathered = self._own.new_zeros(len(cuts) - 1, longest)

    def __len__(self) -> int:
        return self.arcs.last - self.arcs.first

    @property
    def held_bytes(self) -> int:
        """Memory of x in full, of its pieces that are sent and gathered, and of row starts."""
        return self._full.nbytes + self._gathered.nbytes + self._own.nbytes + 4 * len(self)

    def write_row_sums(self, out: Tensor) -> None:
        """Write the rows' sums of A + I, for which nothing is exchanged."""
        self._multiply(as_tensor(empty_array((self.cuts[-1],), self.device)).fill_(1.0), out)

    def __call__(self, x: Tensor, out: Tensor) -> float:
        """Write the rows of (A + I) x, given this process's piece of x; the product of both."""
        if len(self.cuts) == 2:
            return self._multiply(x, out)
        self._own[: len(x)] = x
        distributed.all_gather(list(self._gathered.unbind()), self._own)
        for piece, (a, b) in zip(self._gathered, pairwise(self.cuts), strict=True):
            self._full[a:b] = piece[: b - a]
        return self._multiply(self._full, out)

    def _multiply(self, x: Tensor, out: Tensor) -> float:
        own, total = x[self.arcs.first : self.arcs.last], 0.0
        for number, block in enumerate(self.arcs):
            mine, here = own[block.first : block.last], out[block.first : block.last]
            prepared = self._prepared(number, block)
            if isinstance(prepared, Multiplication):
                total += prepared(x, mine, here)
                continue
            for part in prepared:
                self._multiply_part(part, x, out[part.first : part.last])
            here += mine
            total += dot(as_array(mine), as_array(here))
        return total

    def _prepared(self, number: int, block: ArcBlock) -> Multiplication | list[ArcBlock]:
        """The compiled product with a block, or its short parts; made once if the block stays."""
        if number < len(self._known):
            return self._known[number]
        fast, made = kernels(), None
        if fast is not None and len(block.column) < 2**31:
            starts = (block.row_start - block.row_start[0]).int()
            stored = CSRArrays(starts, block.column, block.weight)
            made = fast.multiplication(stored, loops=True) if stored.usable else None
        size = BLOCK if self.device.type == "cpu" else _CUDA_BLOCK
        known = list(block.spans(size)) if made is None else made
        if self.arcs.kept:
            self._known.append(known)
        return known

    def _multiply_part(self, part: ArcBlock, x: Tensor, out: Tensor) -> None:
        count = len(part.column)
        if part.weight is None and len(self._ones) < count:
            self._ones = self._ones.new_ones(count)
        values = self._ones[:count] if part.weight is None else part.weight.double()
        crow = (part.row_start - part.row_start[0]).to(part.column)
        BlockProduct(crow, part.column, values, len(x))(x, out)
