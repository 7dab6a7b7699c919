"""``balance`` over several processes, each with a range of rows: one vector is exchanged per step.

Every process of a ``torch.distributed`` group maps one shard from disk (see
:mod:`rawlsgcn.graphs.shards`) and holds its rows of A and its piece of every vector of the
iteration; only the vector to be multiplied is held in full, 8 bytes a node. A step gathers the
pieces of that vector, multiplies this process's rows and updates its piece of x. The acceleration
needs no vector of the other processes: its few inner products are summed over the processes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from .._core.errors import RawlsError
from .._core.kernels import CSRArrays, kernels
from .._core.sparse import Array, array_module, as_array, as_tensor, dot
from ..graphs.shards import Shard, Shards
from .accelerated_descent import Descent
from .iterations import Symmetric
from .scaling import StopReason
from .solver import iterate, require_limits
from .sparse_matrix import BlockProduct
from .symmetry import hash_bits

#: Nonzeros of a product's block, whose values are one short array of ones for all blocks.
_BLOCK = 1 << 19


@dataclass(frozen=True, eq=False)
class ShardScaling:
    """One process's rows of the scaling x: the result of :func:`balance_shards`.

    Attributes:
        first: The first row of the shard.
        last: The row after its last one.
        scale: x_i for these rows, float64.
        iterations: Number of products, each with one exchange of a vector.
        residual: max ``|sum − 1|`` over all rows of all processes.
        history: The residual after each product.
        reason: Why it stopped and what to do next.
        held_bytes: Memory of this process's rows of the matrix and of its vectors.
    """

    first: int
    last: int
    scale: Tensor = field(repr=False)
    iterations: int
    residual: float
    history: tuple[float, ...] = field(repr=False)
    reason: StopReason
    held_bytes: int

    @property
    def converged(self) -> bool:
        """Whether the residual is at most ``tol``."""
        return self.reason is StopReason.CONVERGED


def balance_shards(
    shards: Shards,
    *,
    tol: float = 1e-8,
    max_iterations: int = 2000,
    device: torch.device | str = "cpu",
) -> ShardScaling:
    """Balance A + I in the processes of the default group, shard i in process i.

    Without a process group the one shard is balanced in this process.

    Args:
        shards: The shards of a symmetric A without self-loops, as many as there are processes.
        tol: Largest ``|sum − 1|`` of a row that counts as converged.
        max_iterations: Maximum number of products.
        device: The device of this process.

    Returns:
        This process's rows of the scaling.

    Raises:
        RawlsError: If there are more or fewer shards than processes, if the matrix is not symmetric
            (which a random fingerprint of the arcs shows) or has self-loops, or if there is no such
            device.
    """
    require_limits(tol, max_iterations)
    target = _device(device)
    rank, world = _rank_and_world_size()
    if len(shards) != world:
        raise RawlsError(
            f"{shards.folder} has {len(shards)} shard{'s' * (len(shards) != 1)}, but "
            f"{world} process{'es' * (world != 1)} "
            f"{'were' if world != 1 else 'was'} started: use torchrun --nproc-per-node "
            f"{len(shards)}, or write the shards again"
        )
    shard = shards.open(rank)
    rows = _Rows(shard, shards.cuts, target)
    _require_symmetric(rows, shards.folder)
    descent = _ShardDescent(_ShardIteration(rows), target, accelerate=True)
    with np.errstate(all="ignore"):
        residual, history, reason = iterate(descent, tol, max_iterations)
    return ShardScaling(
        first=shard.first,
        last=shard.last,
        scale=descent.best.clone(),
        iterations=len(history),
        residual=residual,
        history=tuple(history),
        reason=reason,
        held_bytes=shard.graph_bytes + descent.held_bytes + rows.held_bytes,
    )


def _device(name: Any) -> torch.device:
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = torch.device("meta")
    missing = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if device.type not in ("cpu", "cuda") or missing:
        raise RawlsError(f"there is no device {name!r} to balance on: use cpu or a cuda device")
    return device


class _Rows:
    """The rows of one shard of A + I, and the exchange of x between the processes."""

    def __init__(self, shard: Shard, cuts: list[int], device: torch.device) -> None:
        self.first, self.last = shard.first, shard.last
        self.row_start = _tensor(shard.row_start)
        self.column = _tensor(shard.column).to(device)
        self.weight = None if shard.weight is None else _tensor(shard.weight).to(device)
        self.cuts, nodes = cuts, cuts[-1]
        self.full = torch.empty(nodes, dtype=torch.float64, device=device)
        longest = max(b - a for a, b in pairwise(cuts))
        self.gathered = torch.zeros(len(cuts) - 1, longest, dtype=torch.float64, device=device)
        self._own = torch.zeros(longest, dtype=torch.float64, device=device)
        total = int(self.row_start[-1])
        fast, self._compiled, self._starts_bytes = kernels() if total < 2**31 else None, None, 0
        if fast is not None:
            stored = CSRArrays(self.row_start.int(), self.column, self.weight)
            if stored.usable:
                self._compiled = fast.multiplication(stored, loops=True)
                self._starts_bytes = stored.row_start.nbytes
        wanted = torch.arange(0, total, _BLOCK)
        bounds = sorted(
            {0, *torch.searchsorted(self.row_start, wanted).tolist(), self.last - self.first}
        )
        self.spans = list(pairwise(bounds))
        arcs = self.row_start[bounds].tolist()
        self._ones = torch.ones(
            max((b - a for a, b in pairwise(arcs)), default=0), dtype=torch.float64, device=device
        )

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def held_bytes(self) -> int:
        """Memory of x in full, of its pieces that are sent and gathered, and of row starts."""
        sent = self.full.nbytes + self.gathered.nbytes + self._own.nbytes
        return sent + self._starts_bytes

    def write_row_sums(self, out: Tensor) -> None:
        """Write the rows' sums of A + I, for which nothing is exchanged."""
        self.full.fill_(1.0)
        self._multiply(out)

    def __call__(self, x: Tensor, out: Tensor) -> float:
        """Write the rows of (A + I) x, given this process's piece of x; the product of both."""
        self._own[: len(x)] = x
        if len(self.cuts) > 2:
            distributed.all_gather(list(self.gathered.unbind()), self._own)
        else:
            self.gathered[0] = self._own
        for piece, (a, b) in zip(self.gathered, pairwise(self.cuts), strict=True):
            self.full[a:b] = piece[: b - a]
        return self._multiply(out)

    def _multiply(self, out: Tensor) -> float:
        own = self.full[self.first : self.last]
        if self._compiled is not None:
            return self._compiled(self.full, own, out)
        for first, last in self.spans:
            a, b = self.row_start[[first, last]].tolist()
            values = self._ones[: b - a] if self.weight is None else self.weight[a:b].double()
            crow = (self.row_start[first : last + 1] - a).to(self.column)
            block = BlockProduct(crow, self.column[a:b], values, len(self.full))
            block(self.full, out[first:last])
        out += own
        return dot(as_array(own), as_array(out))


class _ShardIteration(Symmetric):
    """x ← 2 x / (1 + r) on this process's piece of x; the diagonal of A + I is one."""

    def __init__(self, rows: _Rows) -> None:
        self._rows, self._factor = rows, 1.0
        self._library = array_module(rows.column.device)
        self.size = len(rows)

    def start(self, x: Array, y: Array) -> list[float]:
        """As in one process: x_i solves x² + o_i s x = 1, with o the row sums of A."""
        self._rows.write_row_sums(as_tensor(y))
        y -= 1
        total, nodes = _sums(float(y.sum()))[0], self._rows.cuts[-1]
        mean = math.sqrt(nodes / total) if total else 0.0
        for _ in range(8 if total else 0):
            self._write_roots(y, mean, x)
            mean = math.sqrt(mean * _sums(dot(y, x))[0] / total)
        self._write_roots(y, mean, x)
        factor = math.sqrt(nodes / _sums(self.product(as_tensor(x), as_tensor(y)))[0])
        x *= factor
        y *= factor
        return []

    def _write_roots(self, outer: Array, mean: float, x: Array) -> None:
        linear = outer * mean
        x[:] = 2 / (linear + self._library.sqrt(linear * linear + 4))

    def product(self, p: Tensor, q: Tensor) -> float:
        return self._rows(p, q)

    def measure(self, x: Tensor, y: Tensor) -> int:
        self._rows(x, y)
        return 1


class _ShardDescent(Descent):
    """The descent on pieces of its vectors, its sums taken over all processes."""

    def _sums(self, *numbers: float) -> list[float]:
        return _sums(*numbers)

    def _largest(self, *numbers: float) -> list[float]:
        return _reduced(numbers, distributed.ReduceOp.MAX)


def _require_symmetric(rows: _Rows, folder: Path) -> None:
    """Raise an error unless the matrix is symmetric, by the fingerprint of ``inspect_matrix``."""
    # The keys use the memory of x: they are one number for each node too.
    key = rows.full.view(torch.int64)
    generator = torch.Generator(key.device).manual_seed(20220430)
    key.random_(-(2**63), 2**63 - 1, generator=generator).bitwise_or_(1)
    totals = torch.zeros(2, dtype=torch.int64, device=rows.column.device)
    for first, last in rows.spans:
        a, b = rows.row_start[[first, last]].tolist()
        lengths = rows.row_start[first : last + 1].diff().to(rows.column.device)
        nodes = torch.arange(first, last, device=rows.column.device) + rows.first
        row, column = torch.repeat_interleave(nodes, lengths), rows.column[a:b].long()
        term = key[row] * key[column] * (row - column).sign_()
        if rows.weight is not None:
            term *= hash_bits(rows.weight[a:b])
        totals += torch.stack([term.sum(), (row == column).sum()])
    if len(rows.cuts) > 2:
        distributed.all_reduce(totals)
    asymmetry, loops = totals.tolist()
    if loops:
        raise RawlsError(
            f"the shards in {folder} have {loops} self-loops, which balancing adds itself: write "
            "them without self-loops"
        )
    if asymmetry:
        raise RawlsError(
            f"the matrix in the shards in {folder} is not symmetric: write both directions of "
            "every edge, with the same weight"
        )


def _sums(*numbers: float) -> list[float]:
    return _reduced(numbers, distributed.ReduceOp.SUM)


def _reduced(numbers: Sequence[float], how: Any) -> list[float]:
    if _rank_and_world_size()[1] == 1:
        return list(numbers)
    on_gpu = distributed.get_backend() == "nccl"
    values = torch.tensor(numbers, dtype=torch.float64, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(values, how)
    reduced: list[float] = values.tolist()
    return reduced


def _rank_and_world_size() -> tuple[int, int]:
    """Return the number of this process and the number of processes."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def _tensor(mapped: Any) -> Tensor:
    with warnings.catch_warnings():
        # The files are mapped read-only, and only ever read.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.asarray(mapped))
