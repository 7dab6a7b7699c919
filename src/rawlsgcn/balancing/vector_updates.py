"""The vectors of a descent, and the update of all of them that every step makes.

``vector_updates`` returns the compiled update where there is one, and otherwise that of numpy (on
the CPU) or torch (on CUDA), which process a chunk of the nodes at a time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch

from .._core.kernels import Kernels, StepCoefficients, addresses, kernels
from .._core.sparse import Array, array_module, empty_array
from .iterations import Iteration

#: Nodes processed at once: many to a call, but few enough that their vectors stay in the cache.
_CPU_CHUNK = 1 << 15
_CUDA_CHUNK = 1 << 24


class UpdateSums(NamedTuple):
    """The sums of a move, with u = p / x, v = d / x and e = x ∘ y − 1 at the new point."""

    uu: float
    uv: float
    ue: float
    vv: float
    ve: float
    #: (M d)ᵀ p
    dp: float
    #: The largest and the least e, the least x and the largest v.
    high: float
    low: float
    least: float
    longest: float

    def and_of(self, other: UpdateSums) -> UpdateSums:
        """The sums over the nodes of both."""
        uu, uv, ue, vv, ve, dp = (a + b for a, b in zip(self[:6], other[:6], strict=True))
        high, low = max(self.high, other.high), min(self.low, other.low)
        least, longest = min(self.least, other.least), max(self.longest, other.longest)
        return UpdateSums(uu, uv, ue, vv, ve, dp, high, low, least, longest)


class VectorUpdates(ABC):
    """Vectors of all nodes: three ``points`` (x, y = M x), two ``steps`` p, and M p, the ``image``.

    The last displacement d is the difference of two points, and M d that of their products.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self.points, self.steps = empty_array((3, 2, size), device), empty_array((2, size), device)
        self.image = empty_array((size,), device)
        # Before the first step there is none.
        self.steps[0], self.image[:] = 0, 0

    @abstractmethod
    def move(
        self, at: int, before: int, to: int, now: int, weights: tuple[float, float]
    ) -> UpdateSums:
        """Write point ``to`` = point ``at`` + t₁ p + t₂ d, and the next p.

        p is the step ``now``, d leads from point ``before`` to point ``at``; ``to`` may be
        ``before``. Where t₂ is zero, d is not looked at.
        """


def vector_updates(iteration: Iteration, device: torch.device) -> VectorUpdates:
    """Return the fastest updates for this device."""
    fast = kernels() if device.type == "cpu" else None
    return CompiledUpdates(iteration, fast) if fast else ChunkedUpdates(iteration, device)


class CompiledUpdates(VectorUpdates):
    """One sweep of compiled code over all nodes."""

    def __init__(self, iteration: Iteration, fast: Kernels) -> None:
        super().__init__(iteration.size, torch.device("cpu"))
        self._iteration, self._fast = iteration, fast
        self._room = fast.move_room(iteration.size)
        self._at_points, self._at_steps = addresses(*self.points), addresses(*self.steps)
        (self._at_image,) = addresses(self.image)

    def move(
        self, at: int, before: int, to: int, now: int, weights: tuple[float, float]
    ) -> UpdateSums:
        points = (self._at_points[place] for place in (at, before, to))
        vectors = *points, self._at_steps[now], self._at_image, self._at_steps[1 - now]
        size, move = self._iteration.size, self._fast.move
        sums = (
            UpdateSums(*move(where, size, vectors, weights, coefficients, self._room))
            for where, coefficients in self._iteration.step_coefficients()
        )
        return reduce(UpdateSums.and_of, sums)


class ChunkedUpdates(VectorUpdates):
    """Calls of numpy or torch, for one chunk of the nodes after another."""

    def __init__(self, iteration: Iteration, device: torch.device) -> None:
        super().__init__(iteration.size, device)
        self._iteration, self._library, self._device = iteration, array_module(device), device
        step = _CPU_CHUNK if device.type == "cpu" else _CUDA_CHUNK
        room = empty_array((5, min(iteration.size, step)), device)
        self._chunks = [
            _Chunk(span, slice(start, min(start + step, last)), self, room)
            for span, ((first, last), _) in enumerate(iteration.step_coefficients())
            for start in range(first, last, step)
        ]

    def move(
        self, at: int, before: int, to: int, now: int, weights: tuple[float, float]
    ) -> UpdateSums:
        lib, (t, s), coefficients = self._library, weights, self._iteration.step_coefficients()
        ends = [-math.inf] * 4
        products = empty_array((2, 4), self._device)
        products[:] = 0
        for chunk in self._chunks:
            (displacement, image, u, v, excess), new_p = chunk.rows, chunk.steps[1 - now]
            x, y = point = chunk.points[to]
            lib.multiply(chunk.steps[now], t, out=displacement)
            lib.multiply(chunk.image, t, out=image)
            if s:
                # Of x and y at once; u and v are not in use yet.
                last = lib.subtract(chunk.points[at], chunk.points[before], out=chunk.relative[1:3])
                last *= s
                chunk.both += last
            lib.add(chunk.points[at], chunk.both, out=point)
            lib.multiply(x, y, out=excess)
            excess -= 1
            self._propose(x, excess, chunk.where, coefficients[chunk.span][1], u)
            lib.multiply(x, u, out=new_p)
            image *= x  # (M d)ᵀ p is its product with u
            lib.divide(displacement, x, out=v)
            # Not by BLAS, whose order of additions depends on its threads.
            products[0] += (u * chunk.relative).sum(1)
            products[1] += (v * chunk.relative).sum(1)
            here = self._numbers(excess.max(), -excess.min(), -x.min(), v.max())
            ends = [max(pair) for pair in zip(ends, here, strict=True)]
        (dp, uu, uv, ue), (_, _, vv, ve) = products.tolist()
        return UpdateSums(uu, uv, ue, vv, ve, dp, ends[0], -ends[1], -ends[2], ends[3])

    def _numbers(self, *results: Array) -> Sequence[float]:
        """Results as numbers, for all of which a GPU is waited for once."""
        if self._library is np:
            return results
        numbers: list[float] = torch.stack(results).tolist()
        return numbers

    def _propose(
        self, x: Array, excess: Array, where: slice, coefficients: StepCoefficients, u: Array
    ) -> None:
        """Write u = e / ((c + e) (1 + m x²))."""
        constant, diagonal = coefficients
        self._library.add(excess, constant, out=u)
        if not isinstance(diagonal, float) or diagonal:
            weight = self._library.multiply(x, x)
            if not isinstance(diagonal, float):
                weight *= diagonal[where]
            weight += 1
            u *= weight
        self._library.divide(excess, u, out=u)


class _Chunk:
    """Views of a chunk of all vectors, made once rather than in every step."""

    def __init__(self, span: int, where: slice, whole: VectorUpdates, room: Array) -> None:
        self.span, self.where = span, where
        self.points, self.steps = whole.points[..., where], whole.steps[:, where]
        self.image = whole.image[where]
        # d, M d, u, v and e: every chunk is done with these before the next begins.
        own = room[:, : where.stop - where.start]
        self.rows, self.both, self.relative = tuple(own), own[:2], own[1:]
