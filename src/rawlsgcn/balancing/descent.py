"""Accelerated descent of the scaling energy: two remembered directions and no wasted product.

The only expensive part of a scaling problem, the product y = M x, is linear. So the product of any
mixture of known vectors is the same mixture of known products and costs nothing, and a mixture can
be judged by the true residual x ∘ (M x) − 1 rather than by a model of it, as Anderson acceleration
(Anderson 1965; Walker and Ni 2011) has to.

Near the solution the energy is quadratic, and there the best mixture of *all* earlier steps lies in
the plane of the newest step and the last displacement: the conjugate gradient method in its locally
optimal form (Knyazev 2001, "Toward the optimal preconditioned eigensolver"). Two directions
therefore bring what a long memory would.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from .arrays import Array, array, library, tensor
from .iterations import Iteration

#: Nodes handled at once: few enough that all their vectors stay in the processor's own cache.
_CPU_PART = 1 << 13
_CUDA_PART = 1 << 24
#: A mixture must leave at most this share of the best residual so far, or lower φ.
_CONTRACTION = 0.9
#: The share of itself that every component of x keeps in a mixture that had to be shortened.
_LEAST_KEPT = 0.1
#: 1 − cos² of the angle between the two directions under which rounding alone tells them apart.
_APART = 1e-10
#: What one update of y may add to the distance of x ∘ y from x ∘ (M x).
_ROUNDING = 16 * torch.finfo(torch.float64).eps
#: Weights of the newest step and the last displacement: the plain step, and none.
_PLAIN, _STAY = (-1.0, 0.0), (0.0, 0.0)


class Descent:
    r"""Lowers the scaling energy, one step of ``iteration`` after another.

    A point is a pair (x, y = M x) with M symmetric. Balancing minimises

    .. math:: φ(x) = ½ xᵀ M x − Σ_i \log x_i, \qquad x ∘ ∇φ(x) = x ∘ (M x) − 1.

    The iteration proposes a step −p, with p = x ∘ u; q = M p is the one product spent. The point
    then moves within the span of p and of its last displacement d to where the quadratic model of
    φ is least, with Hessian pᵀ (M + diag(x)⁻²) d. Without ``accelerate`` it moves by −p.

    *Safeguard.* A mixture is taken only if it contracts the best residual seen so far, or lowers
    φ; otherwise the plain step −p is made. Contractions of a number that never grows can only be
    finitely many without convergence, and after them every step lowers φ, as the plain step does
    (see :mod:`rawlsgcn.balancing.iterations`): the descent converges wherever the plain iteration
    does.

    Attributes:
        residual: max |x ∘ y − 1| at the present point.
        error: how far rounding may have taken that from max |x ∘ (M x) − 1|.
        best: the x that was last kept.
    """

    def __init__(self, iteration: Iteration, device: torch.device, accelerate: bool) -> None:
        size, part = iteration.size, _CPU_PART if device.type == "cpu" else _CUDA_PART
        self._iteration, self._accelerate = iteration, accelerate
        self._library, self._device = library(device), device
        # A move that is refused must leave everything as it was: it is made into the second of
        # two places. The best x must survive any move: it has three.
        self._x, self._y = self._zeros(3, size), self._zeros(2, size)
        # First p and d, the newest step and the last displacement; then their products.
        self._steps, self._images = self._zeros(2, 2, size), self._zeros(2, 2, size)
        self._at = self._best_at = self._now = 0
        self._parts = [
            slice(start, min(start + part, last))
            for first, last in iteration.spans
            for start in range(first, last, part)
        ]
        # u = p / x, v = d / x and e = x ∘ y − 1 of one part of the nodes, and their products.
        self._relative = self._zeros(3, min(size, part))
        self._products = [[0.0] * 3] * 2
        self._d_image, self._positive, self._least = 0.0, True, math.inf
        self.residual, self.error = math.inf, 0.0

    def begin(self) -> list[float]:
        """Take the iteration's first point; the result is the residual after each product."""
        history = self._iteration.start(self._x[0], self._y[0])
        self._settle(self._move(_STAY))
        return [*history, self.residual]

    def step(self) -> None:
        """Spend one product and move."""
        p, q = self._steps[self._now, 0], self._images[self._now, 0]
        self._iteration.product(tensor(p), tensor(q))
        moved = self._mix() if self._accelerate else None
        self.error += _ROUNDING
        self._settle(self._move(_PLAIN) if moved is None else moved)

    def measure(self) -> int:
        """Compute y = M x anew, which ends the error; the result is the products it took."""
        spent = self._iteration.measure(tensor(self._x[self._at]), tensor(self._y[self._now]))
        self._least, self.error = math.inf, 0.0
        self._settle(self._move(_STAY))
        return spent

    def keep(self) -> None:
        """Remember the present x as the best."""
        self._best_at = self._at

    @property
    def held_bytes(self) -> int:
        """What its vectors take."""
        return sum(int(each.nbytes) for each in (self._x, self._y, self._steps, self._images))

    @property
    def best(self) -> Tensor:
        return tensor(self._x[self._best_at])

    def _mix(self) -> float | None:
        """Move to the mixture of p and d that lowers φ; its residual, or None where refused."""
        weights = self._newton_weights()
        residual = self._move(weights)
        kept = self._kept_by(weights) if not self._positive else 1.0
        if kept < _LEAST_KEPT:
            shorter = (1 - _LEAST_KEPT) / (1 - kept)
            residual = self._move((weights[0] * shorter, weights[1] * shorter))
        if residual <= _CONTRACTION * self._least and self._positive:
            return residual
        # A comparison with NaN is false, so that a mixture which overflowed is refused here.
        return residual if self._positive and self._energy_change() < 0 else None

    def _newton_weights(self) -> tuple[float, float]:
        """t minimising the quadratic model of φ(x + t₁ p + t₂ d); the plain step without one."""
        directions = self._steps[self._now]
        p_image, cross = 0.0, 0.0
        for part in self._parts:
            one, other = (directions[:, part] @ self._images[self._now, 0, part]).tolist()
            p_image, cross = p_image + one, cross + other
        p_image, cross = self._sums(p_image, cross)
        (uu, uv, ue), (_, vv, ve) = self._products
        pp, pd, dd = uu + p_image, uv + cross, vv + self._d_image
        determinant = pp * dd - pd * pd
        if pp > 0 and dd > 0 and determinant > _APART * pp * dd:
            return (pd * ve - dd * ue) / determinant, (pd * ue - pp * ve) / determinant
        return (-ue / pp, 0.0) if pp > 0 else _PLAIN

    def _move(self, weights: tuple[float, float]) -> float:
        """Make x + t₁ p + t₂ d, all that is known of it, and the next p; the residual there."""
        library, now, then = self._library, self._now, 1 - self._now
        x, y, new_x, new_y = self._x[self._at], self._y[now], self._x[self._next()], self._y[then]
        mix = self._row(weights)
        extremes, lowest, self._d_image = [], math.inf, 0.0
        products = self._row((0.0,) * 3)
        for part in self._parts:
            to_x, to_y = new_x[part], new_y[part]
            d, d_image = self._steps[then, 1, part], self._images[then, 1, part]
            relative = self._relative[:, : len(to_x)]
            u, v, excess = relative
            library.matmul(mix, self._steps[now][:, part], out=d)
            library.matmul(mix, self._images[now][:, part], out=d_image)
            library.add(x[part], d, out=to_x)
            library.add(y[part], d_image, out=to_y)
            library.multiply(to_x, to_y, out=excess)
            excess -= 1
            self._iteration.propose(to_x, excess, part, u)
            library.multiply(to_x, u, out=self._steps[then, 0, part])
            library.divide(d, to_x, out=v)
            products = products + relative[:2] @ relative.T
            self._d_image += float(d @ d_image)
            extremes += [float(excess.min()), float(excess.max())]
            lowest = min(lowest, float(to_x.min()))
        (uu, uv, ue), (_, vv, ve) = products.tolist()
        uu, uv, ue, vv, ve, self._d_image = self._sums(uu, uv, ue, vv, ve, self._d_image)
        self._products = [[uu, uv, ue], [uv, vv, ve]]
        residual, below = self._largest(float(np.abs(extremes).max()), -lowest)
        self._positive = below < 0
        return residual

    def _settle(self, residual: float) -> None:
        """Stay where the last move led."""
        self._at, self._now = self._next(), 1 - self._now
        self.residual = residual
        self._least = min(self._least, residual)

    def _next(self) -> int:
        return next(i for i in range(3) if i not in (self._at, self._best_at))

    def _kept_by(self, weights: tuple[float, float]) -> float:
        """The least share of itself that a component of x keeps in such a mixture."""
        x, mix, directions = self._x[self._at], self._row(weights), self._steps[self._now]
        least = min(float(((mix @ directions[:, part]) / x[part]).min()) for part in self._parts)
        return 1 - self._largest(-least)[0]

    def _energy_change(self) -> float:
        """φ after the last move less φ before."""
        x, y = self._x[self._at], self._y[self._now]
        new_x, new_y = self._x[self._next()], self._y[1 - self._now]
        change = 0.0
        for part in self._parts:
            product = (new_x[part] * new_y[part] - x[part] * y[part]) / 2
            change += float((product - self._library.log(new_x[part] / x[part])).sum())
        return self._sums(change)[0]

    def _sums(self, *numbers: float) -> list[float]:
        """Sums over the nodes at hand made sums over all nodes; here these are the same."""
        return list(numbers)

    def _largest(self, *numbers: float) -> list[float]:
        """The same for the largest of numbers."""
        return list(numbers)

    def _row(self, numbers: tuple[float, ...]) -> Array:
        if self._library is np:
            return np.array(numbers)
        return torch.tensor(numbers, dtype=torch.float64, device=self._device)

    def _zeros(self, *shape: int) -> Array:
        return array(torch.zeros(shape, dtype=torch.float64, device=self._device))
