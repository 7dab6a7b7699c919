"""Anderson acceleration for matrix scaling, as an object beside the iteration.

Anderson (1965), "Iterative procedures for nonlinear integral equations"; Walker and Ni (2011),
"Anderson acceleration for fixed-point iterations". The classical form mixes the last few iterates
by a linear model of the residual. A scaling problem allows better: its only expensive part, the
product y = M x, is linear, so the product of any mixture of earlier iterates is the same mixture
of earlier products and costs nothing. The mixture is therefore judged by the true residual
x ∘ (M x) − 1, not by a model of it, and a bad one is refused without having spent a product.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Nodes handled at once: small enough that all their vectors stay in the processor's cache.
_CPU_PART = 1 << 17
_CUDA_PART = 1 << 24
#: A mixture must leave at most this share of the best residual so far, or lower φ.
_CONTRACTION = 0.9
#: Every component of x keeps at least this share of itself in a mixture, so that it stays positive.
_LEAST_KEPT = 0.1
#: The rounding of a difference of two float64 products, relative to them.
_DIFFERENCE = 16 * torch.finfo(torch.float64).eps
#: The residual under which the mixture minimises the residual itself, no longer φ.
_NEAR = 0.01


class Anderson:
    r"""Mixes the newest point with the last ``depth`` steps so as to lower the scaling energy.

    A point is a pair (x, y = M x) with M symmetric. Balancing minimises

    .. math:: φ(x) = ½ xᵀ M x − Σ_i \log x_i, \qquad x ∘ ∇φ(x) = x ∘ (M x) − 1,

    and :meth:`mix` takes one Newton step for φ within the span of the remembered steps p_j, with
    Hessian p_iᵀ (M + diag(x)⁻²) p_j.

    *Safeguard.* A mixture is taken only if it contracts the best residual seen so far, or lowers
    φ; otherwise the point is returned unchanged. Contractions of a number that never grows can
    only be finitely many without convergence, and after them every step lowers φ, as the plain
    step does (see :mod:`rawlsgcn.balancing.iterations`): the accelerated iteration converges
    wherever the plain one does.

    Steps may be kept in float32, which halves the memory they take and the time to pass over
    them. ``error`` bounds what their rounding can have done to the residual of the last mixture,
    so that the caller knows when that residual must be measured anew.
    """

    def __init__(self, size: int, depth: int, dtype: torch.dtype, device: torch.device) -> None:
        self.depth, self.device = depth, device
        self._steps = torch.empty(depth, size, dtype=dtype, device=device)
        self._images = torch.empty_like(self._steps)
        self._rounding = torch.finfo(dtype).eps
        # How far x ∘ y may be from x ∘ (M x): for each step, and for the last mixed point.
        self._errors = torch.zeros(depth, dtype=torch.float64)
        self.error = 0.0
        # Squared, as the small system is: steps closer than this are told apart by rounding alone.
        self._apart = 1e-6 if dtype == torch.float32 else 1e-10
        self._pushed = 0
        self._best = float("inf")
        part = _CPU_PART if device.type == "cpu" else _CUDA_PART
        self._parts = [slice(a, min(a + part, size)) for a in range(0, size, part)]

    def push(self, x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> None:
        """Remember the step from the last mixed point to a new one in place of the oldest."""
        slot = self._pushed % len(self._steps)
        length = torch.zeros((), dtype=torch.float64, device=x.device)
        for part in self._parts:
            step = new_x[part] - x[part]
            self._steps[slot, part] = step
            self._images[slot, part] = new_y[part] - y[part]
            length = torch.maximum(length, step.div_(new_x[part]).abs_().max())
        longest = float(self._largest(length))
        self._errors[slot] = self.error + self._rounding * longest + _DIFFERENCE
        self._pushed += 1

    def mix(self, x: Tensor, y: Tensor, out_x: Tensor, out_y: Tensor) -> float:
        """Write the mixed point to (out_x, out_y); the result is its residual max |x ∘ y − 1|.

        Called once for every new point; what is written is (x, y) itself where no mixture helps.
        """
        residual = self._mixture(x, y, out_x, out_y)
        if residual is None:
            out_x.copy_(x)
            out_y.copy_(y)
            residual, self.error = self._residual(x, y), 0.0
        self._best = min(self._best, residual)
        return residual

    def measured(self, x: Tensor, y: Tensor) -> float:
        """The residual of the last mixed point, now that y = M x was computed for it."""
        self.error = 0.0
        self._best = self._residual(x, y)
        return self._best

    def forget(self) -> None:
        """Start anew, with no steps remembered."""
        self._pushed = 0

    def _mixture(self, x: Tensor, y: Tensor, out_x: Tensor, out_y: Tensor) -> float | None:
        """The residual of the mixed point, or None where it is refused."""
        weights = self._newton_weights(x, y)
        if weights is None:
            return None
        kept, residual = self._move(x, y, weights, out_x, out_y)
        if kept < _LEAST_KEPT:
            shorter = weights * ((1 - _LEAST_KEPT) / (1 - kept))
            _, residual = self._move(x, y, shorter, out_x, out_y)
        if residual <= _CONTRACTION * self._best:
            return residual
        # A comparison with NaN is false, so that a mixture which overflowed is refused here.
        return residual if self._energy_change(x, y, out_x, out_y) < 0 else None

    def _move(
        self, x: Tensor, y: Tensor, weights: Tensor, out_x: Tensor, out_y: Tensor
    ) -> tuple[float, float]:
        """Add the weighted steps to (x, y); the least new_x / x, and the new residual."""
        known = len(weights)
        kept, worst = torch.tensor([1.0, 0.0], dtype=torch.float64, device=x.device)
        for part in self._parts:
            new_x = torch.add(x[part], weights @ self._steps[:known, part], out=out_x[part])
            new_y = torch.add(y[part], weights @ self._images[:known, part], out=out_y[part])
            kept = torch.minimum(kept, (new_x / x[part]).min())
            worst = torch.maximum(worst, (new_x * new_y).sub_(1).abs_().max())
        most, residual = self._largest(torch.stack([-kept, worst])).tolist()
        self.error = float(weights.abs().cpu().double() @ self._errors[:known])
        return -most, residual

    def _newton_weights(self, x: Tensor, y: Tensor) -> Tensor | None:
        """t minimising the quadratic model of φ(x + Σ_j t_j p_j); None where there is none.

        Near the solution t minimises the linear model of the residual instead, as the classical
        form does: φ is flat there, and its least value is not yet the least residual.
        """
        known = min(self._pushed, len(self._steps))
        if known == 0:
            return None
        system = torch.zeros(known, known + 1, dtype=torch.float64, device=x.device)
        for part in self._parts:
            near = x[part].to(self._steps.dtype)
            relative = self._steps[:known, part] / near
            change = torch.addcmul(relative, self._images[:known, part], near)
            excess = (x[part] * y[part]).sub_(1).to(near.dtype)
            left = change if self._best < _NEAR else relative
            system[:, :known] += left @ change.T
            system[:, known] += left @ excess
        system = self._sum(system).cpu()
        hessian, gradient = system[:, :known], system[:, known]
        scale = hessian.diagonal().abs().clamp_min(1e-300).rsqrt()
        hessian = (hessian + hessian.T) / 2 * scale * scale[:, None]
        if not bool(torch.isfinite(hessian).all()):
            return None
        value, vector = torch.linalg.eigh(hessian)
        inverse = torch.where(value > self._apart * value[-1].abs(), 1 / value, 0.0)
        weights: Tensor = -scale * (vector @ (inverse * (vector.T @ (scale * gradient))))
        return weights.to(x.device, self._steps.dtype)

    def _residual(self, x: Tensor, y: Tensor) -> float:
        worst = torch.zeros((), dtype=torch.float64, device=x.device)
        for part in self._parts:
            worst = torch.maximum(worst, (x[part] * y[part] - 1).abs().max())
        return float(self._largest(worst))

    def _energy_change(self, x: Tensor, y: Tensor, new_x: Tensor, new_y: Tensor) -> float:
        """φ(new_x) − φ(x)."""
        change = torch.zeros((), dtype=torch.float64, device=x.device)
        for part in self._parts:
            product = (new_x[part] * new_y[part] - x[part] * y[part]) / 2
            change += (product - (new_x[part] / x[part]).log()).sum()
        return float(self._sum(change))

    def _sum(self, values: Tensor) -> Tensor:
        """Sums over the nodes at hand made sums over all nodes; here these are the same."""
        return values

    def _largest(self, values: Tensor) -> Tensor:
        """The same for the largest values."""
        return values
