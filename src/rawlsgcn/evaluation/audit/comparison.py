"""Two models on the same nodes: the change of each node, and whose bias is lower."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .findings import Estimate, ModelComparison
from .group_statistics import GroupedScores
from .grouping import Grouping
from .intervals import paired_mean
from .model_audit import ResamplingSettings
from .node_scores import NodeScores
from .permutation import swapped_bias


def compare_models(
    first: NodeScores,
    second: NodeScores,
    grouping: Grouping,
    low: npt.NDArray[np.bool_],
    settings: ResamplingSettings,
) -> ModelComparison:
    """Paired differences, the first's less the second's, and the paired tests of the biases."""
    gain = 100 * (first.right - second.right)
    same_loss = first.loss_kind == second.loss_kind
    # A cross entropy and a count of errors cannot be held against each other; the errors can.
    grouped = [
        GroupedScores.of(grouping.value, each.loss if same_loss else 1 - each.right, each.right)
        for each in (first, second)
    ]
    calibrated = None
    if first.calibrated_loss is not None and second.calibrated_loss is not None:
        calibrated = swapped_bias(
            grouped[0].with_loss(first.calibrated_loss),
            grouped[1].with_loss(second.calibrated_loss),
            settings.resamples,
            settings.seed,
        )
    return ModelComparison(
        first.name,
        second.name,
        len(gain),
        paired_mean(gain, settings.level),
        paired_mean(first.loss - second.loss, settings.level)
        if same_loss
        else Estimate(float("nan")),
        # Where all nodes are of one degree, none of them is of a low one.
        Estimate(float("nan")) if low.all() else paired_mean(gain[low], settings.level),
        swapped_bias(grouped[0], grouped[1], settings.resamples, settings.seed),
        calibrated,
    )
