"""The vectors of a descent, and the update of all of them that every step makes.

It is one sweep of compiled code where there is some, and otherwise calls of numpy (on the CPU) or
torch (on CUDA) for a chunk of the nodes at a time.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch

from .._core.kernels import StepCoefficients, addresses, kernels
from .._core.sparse import array_module, empty_array
from .iterations import Iteration

#: Nodes processed at once: many to a call, but few enough that their vectors stay in the cache.
_CPU_CHUNK = 1 << 15
_CUDA_CHUNK = 1 << 24
#: Vectors of all nodes that are held.
NUM_VECTORS = 9


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
        ways: list[Any] = [*[operator.add] * 6, max, min, min, max]
        return UpdateSums(*(way(a, b) for way, a, b in zip(ways, self, other, strict=True)))


class VectorUpdates:
    """Vectors of all nodes: three ``points`` (x, y = M x), two ``steps`` p, and M p, the ``image``.

    The last displacement d is the difference of two points, and M d that of their products.
    """

    def __init__(self, iteration: Iteration, device: torch.device) -> None:
        size = iteration.size
        self.points, self.steps = empty_array((3, 2, size), device), empty_array((2, size), device)
        self.image = empty_array((size,), device)
        # Before the first step there is none.
        self.steps[0], self.image[:] = 0, 0
        self._iteration, self._library = iteration, array_module(device)
        self._fast = kernels() if device.type == "cpu" else None
        if self._fast:
            self._room = self._fast.move_room(size)
            self._at_points, self._at_steps = addresses(*self.points), addresses(*self.steps)
            (self._at_image,) = addresses(self.image)
        else:
            self._chunk = _CPU_CHUNK if device.type == "cpu" else _CUDA_CHUNK
            # d, M d, u, v and e: every chunk is done with these before the next begins.
            self._room = empty_array((5, min(size, self._chunk)), device)

    def move(
        self, at: int, before: int, to: int, now: int, weights: tuple[float, float]
    ) -> UpdateSums:
        """Write point ``to`` = point ``at`` + t₁ p + t₂ d, and the next p.

        p is the step ``now``, d leads from point ``before`` to point ``at``; ``to`` may be
        ``before``. Where t₂ is zero, d is not looked at.
        """
        ranges = self._iteration.step_coefficients()
        if self._fast:
            size, move, room = self._iteration.size, self._fast.move, self._room
            points = (self._at_points[place] for place in (at, before, to))
            vectors = *points, self._at_steps[now], self._at_image, self._at_steps[1 - now]
            sums = [UpdateSums(*move(ends, size, vectors, weights, c, room)) for ends, c in ranges]
        else:
            places = at, before, to, now
            sums = [
                self._move_chunk(slice(start, min(start + self._chunk, last)), places, weights, c)
                for (first, last), c in ranges
                for start in range(first, last, self._chunk)
            ]
        return reduce(UpdateSums.and_of, sums)

    def _move_chunk(
        self,
        where: slice,
        places: tuple[int, int, int, int],
        weights: tuple[float, float],
        coefficients: StepCoefficients,
    ) -> UpdateSums:
        at, before, to, now = places
        lib, (t, s), (constant, diagonal) = self._library, weights, coefficients
        points, steps = self.points[..., where], self.steps[:, where]
        room = self._room[:, : where.stop - where.start]
        displacement, image, u, v, excess = room
        lib.multiply(steps[now], t, out=displacement)
        lib.multiply(self.image[where], t, out=image)
        if s:
            # Of x and y at once; u and v are not in use yet.
            last = lib.subtract(points[at], points[before], out=room[2:4])
            last *= s
            room[:2] += last
        x, y = lib.add(points[at], room[:2], out=points[to])
        lib.multiply(x, y, out=excess)
        excess -= 1
        lib.add(excess, constant, out=u)  # u = e / ((c + e) (1 + m x²))
        if not isinstance(diagonal, float) or diagonal:
            weight = lib.multiply(x, x)
            if not isinstance(diagonal, float):
                weight *= diagonal[where]
            weight += 1
            u *= weight
        lib.divide(excess, u, out=u)
        lib.multiply(x, u, out=steps[1 - now])
        image *= x  # (M d)ᵀ p is its product with u
        lib.divide(displacement, x, out=v)
        # Not by BLAS, whose order of additions depends on its threads.
        of_u, of_v = (u * room[1:]).sum(1), (v * room[1:]).sum(1)
        numbers = *of_u, *of_v[2:], excess.max(), excess.min(), x.min(), v.max()
        # A GPU is waited for once.
        on_gpu = isinstance(excess, torch.Tensor)
        dp, uu, uv, ue, vv, ve, *ends = (torch.stack if on_gpu else np.array)(numbers).tolist()
        return UpdateSums(uu, uv, ue, vv, ve, dp, *ends)
