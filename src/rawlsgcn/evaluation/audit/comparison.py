"""Two models on the same nodes: the change of each node, and whose bias is lower."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .intervals import paired_mean
from .model import Layout, Settings
from .parts import Comparison, Estimate
from .permutation import swapped_bias
from .scores import Scores
from .strata import Strata


def compare_models(
    first: Scores,
    second: Scores,
    layout: Layout,
    low: npt.NDArray[np.bool_],
    settings: Settings,
) -> Comparison:
    """Paired differences, the first's less the second's, and the paired tests of the biases."""
    gain = 100 * (first.right - second.right)
    same_loss = first.loss_kind == second.loss_kind
    # A cross entropy and a count of errors cannot be held against each other; the errors can.
    strata = [
        Strata.of(layout.value, each.loss if same_loss else 1 - each.right, each.right)
        for each in (first, second)
    ]
    calibrated = None
    if first.calibrated_loss is not None and second.calibrated_loss is not None:
        calibrated = swapped_bias(
            strata[0].with_loss(first.calibrated_loss),
            strata[1].with_loss(second.calibrated_loss),
            settings.resamples,
            settings.seed,
        )
    return Comparison(
        first.name,
        second.name,
        len(gain),
        paired_mean(gain, settings.level),
        paired_mean(first.loss - second.loss, settings.level)
        if same_loss
        else Estimate(float("nan")),
        # Where all nodes are of one degree, none of them is of a low one.
        Estimate(float("nan")) if low.all() else paired_mean(gain[low], settings.level),
        swapped_bias(strata[0], strata[1], settings.resamples, settings.seed),
        calibrated,
    )
