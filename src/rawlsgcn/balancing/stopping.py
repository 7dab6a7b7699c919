"""Balancing step by step until it stops: converged, stagnated, overflowed or out of iterations."""

from __future__ import annotations

import math
from collections.abc import Callable

from .accelerated_descent import Descent
from .scaling import StopReason

#: Products without a gain of a tenth after which a residual this small is taken to be rounding.
_PATIENCE, _ROUNDING = 20, 1e-9
#: The share of a residual that may be rounding before all sums are computed again.
_SHARE = 0.1


def iterate(
    descent: Descent,
    tol: float,
    max_iterations: int,
    report: Callable[[list[float]], None] = lambda history: None,
) -> tuple[float, list[float], StopReason]:
    """Return the best point's residual, the residual after each product, and why it stopped.

    ``report`` is called with the residuals so far after each step.
    """
    history = descent.begin()
    best, gained, gained_at = math.inf, math.inf, 0
    while True:
        doubtful = descent.residual <= tol < descent.residual + descent.error
        spoiled = descent.error > max(_ROUNDING, _SHARE * descent.residual)
        if (doubtful or spoiled) and len(history) + 2 <= max_iterations:
            spent = descent.measure()
            history += [float(descent.residual)] * spent
        residual = history[-1] = float(descent.residual + descent.error)  # numpy has its own
        report(history)
        if residual < best:
            best = residual
            descent.keep()
        if best <= tol:
            return best, history, StopReason.CONVERGED
        if not math.isfinite(residual):
            return best, history, StopReason.OVERFLOWED
        if residual <= 0.9 * gained:
            gained, gained_at = residual, len(history)
        stalled = len(history) - gained_at if gained < _ROUNDING else 0
        if stalled >= _PATIENCE:
            return best, history, StopReason.STAGNATED
        if len(history) >= max_iterations:
            return best, history, StopReason.OUT_OF_ITERATIONS
        descent.step()
        history.append(math.nan)
