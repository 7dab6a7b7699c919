"""How sure a model is against how often it is right, by group and before and after scaling."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .intervals import paired_mean
from .parts import GroupCalibration

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
BINS = 15


def calibration_error(confidence: Floats, right: Floats) -> float:
    """The expected calibration error over 15 bins of equal width (Guo et al. 2017), in per cent.

    Σ_b (n_b / n) |mean confidence - accuracy|, a bin holding confidences in (b/15, (b+1)/15].
    """
    if not len(confidence):
        return math.nan
    member = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    away = np.bincount(member, confidence - right, BINS)
    return 100 * float(np.abs(away).sum()) / len(confidence)


def group_calibration(confidence: Floats, right: Floats, level: float) -> GroupCalibration:
    """One group's confidence, its excess over accuracy with an interval, and its error."""
    excess = paired_mean(100 * (confidence - right), level)
    return GroupCalibration(
        100 * float(confidence.mean()), excess, calibration_error(confidence, right)
    )
