"""Two models on the same nodes: the change of each node, and which bias is lower."""

from __future__ import annotations

import math

from .findings import Estimate, ModelComparison
from .group_statistics import GroupedScores
from .grouping import Grouping
from .intervals import paired_mean
from .node_scores import NodeScores
from .permutation import swapped_bias
from .resampling import ResamplingSettings


def compare_models(
    first: NodeScores,
    second: NodeScores,
    grouping: Grouping,
    settings: ResamplingSettings,
) -> ModelComparison:
    """Compare two models by paired differences, and by paired tests of their biases.

    Args:
        first: The scores of one model on the evaluated nodes.
        second: The scores of the other on the same nodes.
        grouping: The groups of these nodes.
        settings: Draws, seed and confidence level.

    Returns:
        The first's figures less the second's, and the tests.
    """
    low = grouping.low
    gain = 100 * (first.right - second.right)
    same_loss = first.loss_kind == second.loss_kind
    # A cross entropy cannot be compared with a count of errors, but two counts of errors can.
    grouped = [
        GroupedScores.of(grouping.member, each.loss if same_loss else 1 - each.right, each.right)
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
    unknown = Estimate(math.nan)
    return ModelComparison(
        first=first.name,
        second=second.name,
        nodes=len(gain),
        accuracy=paired_mean(gain, settings.level),
        loss=paired_mean(first.loss - second.loss, settings.level) if same_loss else unknown,
        # If all nodes have the same degree, none of them is a low-degree node.
        low_accuracy=unknown if low.all() else paired_mean(gain[low], settings.level),
        rest_accuracy=unknown if low.all() else paired_mean(gain[~low], settings.level),
        bias=swapped_bias(grouped[0], grouped[1], settings.resamples, settings.seed),
        calibrated_bias=calibrated,
    )
