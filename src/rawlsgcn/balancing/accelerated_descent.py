"""Accelerated descent of the scaling energy: two search directions and no wasted product.

The only expensive part of a scaling problem, the product y = M x, is linear. So the product of any
mixture of known vectors costs nothing, and a mixture can be judged by the true residual rather than
by a model of it, as Anderson acceleration (Walker and Ni 2011) has to. Near the solution two
directions bring what a long memory would: that is the conjugate gradient method in its locally
optimal form (Knyazev 2001, "Toward the optimal preconditioned eigensolver").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .._core.sparse import array_module, as_tensor
from .iterations import Iteration
from .vector_updates import VectorUpdates

#: A mixture must leave at most this share of the best residual so far, or lower φ.
_CONTRACTION = 0.9
#: The share of itself that every component of x keeps in a mixture that had to be shortened.
_LEAST_KEPT = 0.1
#: 1 − cos² of the angle between the two directions under which rounding alone tells them apart.
_APART = 1e-10
#: What one sum or product of two numbers may be off by, in units of the larger of them.
_ROUNDING = 4 * torch.finfo(torch.float64).eps
#: Weights of the newest step and the last displacement: the plain step, and none.
_PLAIN, _STAY = (-1.0, 0.0), (0.0, 0.0)


class Descent:
    r"""Lowers the scaling energy, one step of ``iteration`` after another.

    A point is a pair (x, y = M x) with M symmetric. Balancing minimizes

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
        error: how far rounding may have taken that from max |x ∘ (M x) − 1|, at most.
        best: the x that was last kept.
    """

    def __init__(self, iteration: Iteration, device: torch.device, accelerate: bool) -> None:
        self._iteration, self._accelerate = iteration, accelerate
        self._library, self._updates = array_module(device), VectorUpdates(iteration, device)
        # A point has one of three places, so that every move keeps the present one and the best
        # one. The one before is kept as long as no move led there; from it follows d.
        self._points, self._at, self._before, self._best_at = self._updates.points, 0, 0, 0
        # The newest step p has one of two places, as a move that is refused makes the next one.
        self._now = 0
        # uᵀu, uᵀv, uᵀe, vᵀv and vᵀe, where u = p / x, v = d / x and e = x ∘ y − 1; and (M d)ᵀ p.
        self._products: Sequence[float] = (0.0,) * 6
        # pᵀ M p, dᵀ M p and dᵀ M d; the last follows from all three at the point before.
        self._images, self._moved_by = (0.0, 0.0, 0.0), _STAY
        self._positive, self._least, self._growth = True, math.inf, 1.0
        self.residual, self.error = math.inf, 0.0
        # How far x ∘ (M d) may be off by rounding, and how large x ∘ y was at the point before.
        self._error_of_image, self._size_before = 0.0, 0.0

    def begin(self) -> list[float]:
        """Take the iteration's first point; the result is the residual after each product."""
        history = self._iteration.start(*self._points[0])
        self._settle(self._move(_STAY))
        return [*history, self.residual]

    def step(self) -> None:
        """Spend one product and move."""
        p, q = as_tensor(self._updates.steps[self._now]), as_tensor(self._updates.image)
        pq = self._iteration.totals(self._iteration.product(p, q))[0]
        self._images = pq, self._products[5], self._images[2]
        size = 1 + self.residual
        # |x ∘ (M p)| ≤ max |u| x ∘ y, where u = p / x.
        image = size if self._iteration.short else size * max(1, math.sqrt(self._products[0]))
        moved = self._mix() if self._accelerate else None
        if moved is None:
            moved = self._move(_PLAIN)
            # Where rounding alone made a sum negative there is no step; as good as an overflow.
            moved = moved if self._positive else math.nan
        self._settle(moved)
        self._add_errors(size, image)

    def measure(self) -> int:
        """Compute y = M x again, which resets the error; return the number of products."""
        x, y = self._points[self._at]
        spent = self._iteration.measure(as_tensor(x), as_tensor(y))
        self._least, self.error, self._error_of_image = math.inf, 0.0, 0.0
        self._settle(self._move(_STAY))
        return spent

    def _add_errors(self, size: float, image: float) -> None:
        """Bound what rounding did in a step from a point with x ∘ y ≤ ``size``.

        |x ∘ (M p)| is at most ``image`` there. Earlier errors of y and of M d stay what they are,
        but x may have grown, and x ∘ y is off by x times those.
        """
        (t, s), growth = self._moved_by, self._growth
        own = _ROUNDING * (abs(t) * image + abs(s) * (size + self._size_before))
        self._error_of_image = growth * (abs(s) * self._error_of_image + own)
        sums = _ROUNDING * (growth * size + 1 + self.residual)
        self.error = growth * self.error + self._error_of_image + sums
        self._size_before = growth * size

    def keep(self) -> None:
        """Remember the present x as the best."""
        self._best_at = self._at

    @property
    def best(self) -> Tensor:
        return as_tensor(self._points[self._best_at, 0])

    def _mix(self) -> float | None:
        """Move to the mixture of p and d that lowers φ; its residual, or None where refused."""
        weights = self._newton_weights()
        residual = self._move(weights)
        if not self._positive:
            kept = self._least_kept()
            if kept >= _LEAST_KEPT:  # a shorter move would not help
                return None
            shorter = (1 - _LEAST_KEPT) / (1 - kept)
            # Back from where that move led, as it may have been to where d began.
            residual = self._move((0.0, -shorter), before=self._next)
            self._moved_by = weights[0] * shorter, weights[1] * shorter
        if not self._positive:
            return None
        # A comparison with NaN is false, so that a mixture which overflowed is refused here.
        small = residual <= _CONTRACTION * self._least
        return residual if small or self._energy_change() < 0 else None

    def _newton_weights(self) -> tuple[float, float]:
        """t minimizing the quadratic model of φ(x + t₁ p + t₂ d); the plain step without one."""
        (pq, dq, dd), (uu, uv, ue, vv, ve, _) = self._images, self._products
        pp, pd, dd = uu + pq, uv + dq, vv + dd
        determinant = pp * dd - pd * pd
        if pp > 0 and dd > 0 and determinant > _APART * pp * dd:
            return (pd * ve - dd * ue) / determinant, (pd * ue - pp * ve) / determinant
        return (-ue / pp, 0.0) if pp > 0 else _PLAIN

    def _move(self, weights: tuple[float, float], before: int | None = None) -> float:
        """Make x + t₁ p + t₂ d, all that is known of it, and the next p; the residual there.

        d leads here from the point before, or from the one at another place.
        """
        self._moved_by = weights
        before = self._before if before is None else before
        sums = self._updates.move(self._at, before, self._next, self._now, weights)
        self._products = self._iteration.totals(*sums[:6])
        worst = max(0.0, sums.high, -sums.low)
        worst, below, longest = self._iteration.maxima(worst, -sums.least, max(0.0, sums.longest))
        self._positive = below < 0
        # v = d / x, with x = (x before) + d, so that x before is x (1 − v).
        self._growth = 1 / (1 - longest) if longest < 1 else math.inf
        # Only sums are sure to carry a NaN along.
        return worst if math.isfinite(self._products[2]) else math.nan

    def _settle(self, residual: float) -> None:
        """Stay where the last move led."""
        self._at, self._before, self._now = self._next, self._at, 1 - self._now
        (t, s), (pq, dq, dd) = self._moved_by, self._images
        self._images = 0.0, 0.0, t * t * pq + 2 * t * s * dq + s * s * dd
        self.residual = residual
        self._least = min(self._least, residual)

    @property
    def _next(self) -> int:
        """The place of the next point: neither the present one's nor the best one's."""
        free = {0, 1, 2} - {self._at, self._best_at}
        # The one before's if it may be, which is in the cache anyway, as d is made of it.
        return self._before if self._before in free else min(free)

    def _least_kept(self) -> float:
        """The least share of itself that a component of x kept in the last move."""
        least = float((self._points[self._next, 0] / self._points[self._at, 0]).min())
        return -self._iteration.maxima(-least)[0]

    def _energy_change(self) -> float:
        """φ after the last move less φ before."""
        (x, y), (new_x, new_y) = self._points[self._at], self._points[self._next]
        change = (new_x * new_y - x * y) / 2
        change -= self._library.log(new_x / x)
        return self._iteration.totals(float(change.sum()))[0]
