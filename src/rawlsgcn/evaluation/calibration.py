"""Calibration: temperature scaling on the validation nodes, and the calibration error."""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

LOWEST, HIGHEST = 1e-3, 1e3
UNDER_CONFIDENT = 0.8
"""Under this temperature a model is so unsure that a low bias may be due to that alone."""
LARGEST_ERROR = math.log(2) / 1.96
"""The largest standard error of log T: the 95 % interval of T ends at T / 2 and 2 T."""
BINS = 15


class CalibrationOutcome(str, Enum):
    """How the search for the temperature ended; the value is a sentence for the user."""

    FOUND = "the temperature was found"
    NO_NODES = "there are no labeled validation nodes, so there is no calibrated bias: give some"
    FLAT = "all classes are equally likely everywhere, so every temperature gives the same"
    IMPRECISE = (
        "the validation nodes leave the temperature open by more than a factor of two, so there "
        "is no calibrated bias: give more validation nodes"
    )
    SEPARABLE = (
        "every sharper model fits the validation nodes better, so no temperature is the best and "
        "there is no calibrated bias: give more validation nodes"
    )
    HOPELESS = (
        "no sharper guess than a uniform one fits the validation nodes, so there is no calibrated "
        "bias: look at the accuracy first"
    )
    DIVERGED = "the logits are not all numbers, so there is no temperature: train with a lower rate"

    @property
    def usable(self) -> bool:
        """Whether the temperature is known well enough for figures after scaling."""
        return self in (CalibrationOutcome.FOUND, CalibrationOutcome.FLAT)


class Temperature(NamedTuple):
    value: float
    outcome: CalibrationOutcome


def temperature(logits: Tensor, y: Tensor) -> Temperature:
    """Find the T in [1e-3, 1e3] for which softmax(logits / T) has the least cross entropy.

    Guo et al., On Calibration of Modern Neural Networks (2017). The mean cross entropy is convex in
    β = 1/T, with derivative

        g(β) = mean over u of (Σ_c softmax(β z_u)_c z_uc - z_u,y(u)),

    which never falls: its root is bracketed by the bounds and found to rounding.

    Args:
        logits: Scores before any softmax, (nodes, classes).
        y: Classes, (nodes,).

    Returns:
        The temperature, and how the search for it ended.
    """
    if not len(y):
        return Temperature(1.0, CalibrationOutcome.NO_NODES)
    z = _centered(logits.double())
    if bool(z.isnan().any()):
        return Temperature(math.nan, CalibrationOutcome.DIVERGED)
    if float(z.min()) == 0:
        return Temperature(1.0, CalibrationOutcome.FLAT)
    of_label = z.gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def derivative(log_beta: float) -> float:
        p = torch.softmax(math.exp(log_beta) * z, -1)
        return float(((p * z).sum(-1) - of_label).mean())

    from scipy.optimize import brentq

    blurred, sharp = -math.log(HIGHEST), -math.log(LOWEST)
    if derivative(sharp) <= 0:
        return Temperature(LOWEST, CalibrationOutcome.SEPARABLE)
    if derivative(blurred) >= 0:
        return Temperature(HIGHEST, CalibrationOutcome.HOPELESS)
    root = float(brentq(derivative, blurred, sharp, xtol=1e-14, rtol=1e-14))
    return Temperature(math.exp(-root), CalibrationOutcome.FOUND)


def precise_temperature(logits: Tensor, y: Tensor) -> Temperature:
    """Find the temperature, and whether the nodes determine it well enough.

    T maximizes a likelihood, whose second derivative at the maximum gives its standard error:

        se(log T) = (Σ_u Var_c~softmax(z_u / T)(z_uc / T))^(-1/2).

    Nodes of which a model is sure add almost nothing to the sum, so few nodes, or few mistakes,
    leave T open. As the largest losses are about proportional to 1/T, an error of a factor of two
    in T is one of four in the bias after scaling. The outcome is ``IMPRECISE`` if the standard
    error is larger than ``LARGEST_ERROR``.
    """
    found = temperature(logits, y)
    if found.outcome is not CalibrationOutcome.FOUND:
        return found
    z = _centered(logits.double() / found.value)
    p = torch.softmax(z, -1)
    mean = (p * z).sum(-1, keepdim=True)
    information = float((p * (z - mean) ** 2).sum())
    if information * LARGEST_ERROR**2 >= 1:
        return found
    return Temperature(found.value, CalibrationOutcome.IMPRECISE)


def _centered(logits: Tensor) -> Tensor:
    # A probability of exactly 0 is a logit of -inf, and 0 times -inf would be NaN.
    return (logits - logits.amax(-1, keepdim=True)).clamp(min=-1e30)


def calibration_error(confidence: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float:
    """Compute the expected calibration error over 15 bins of equal width (Guo et al. 2017).

    ``Σ_b (n_b / n) |mean confidence - accuracy|``, a bin holding confidences in (b/15, (b+1)/15].

    Args:
        confidence: The probability of the predicted class, (nodes,).
        right: Whether that class is correct, 0 or 1, (nodes,).

    Returns:
        The error in per cent; NaN without nodes.
    """
    if not len(confidence):
        return math.nan
    member = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    away = np.bincount(member, confidence - right, BINS)
    return 100 * float(np.abs(away).sum()) / len(confidence)
