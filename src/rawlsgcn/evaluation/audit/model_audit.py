"""All figures of an audit: those of each model, and those of each pair of models compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..calibration import calibration_error
from ..degree_bias import SMALLEST_GROUP
from ..majority_baseline import better_than_constant
from .findings import (
    CurvePoint,
    Estimate,
    GroupAudit,
    GroupCalibration,
    ModelAudit,
    ModelComparison,
    TemperatureScaling,
)
from .group_statistics import GroupedScores
from .grouping import Grouping
from .intervals import GroupMeans, difference, paired_mean, slopes
from .net_variance import net_variance
from .node_scores import NodeScores
from .permutation_tests import shuffled_bias, swapped_bias
from .resampling import resampled
from .worst_off import low_against_rest, worst_and_best, worst_nodes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def audit_models(
    models: Sequence[NodeScores],
    y: Ints,
    grouping: Grouping,
    resamples: int,
    seed: int,
    failed: Collection[str] = (),
) -> tuple[list[ModelAudit], list[ModelComparison]]:
    """Compute the figures of every model, and compare every pair of models that have learned.

    Args:
        models: The scores of each model on the evaluated nodes.
        y: The labels of these nodes, (nodes,).
        grouping: The groups of these nodes.
        resamples: Draws of every bootstrap and permutation test.
        seed: Their seed.
        failed: The names of models whose training failed; they have not learned.

    Returns:
        The figures of the models, and the comparisons.
    """
    low = grouping.low
    audits, able = [], []
    for model in models:
        learned, majority = better_than_constant(model.predicted, y, (low, ~low))
        learned = learned and model.name not in failed
        audits.append(_audit_model(model, grouping, learned, majority, resamples, seed))
        if learned:
            able.append(model)
    pairs = combinations(able, 2)
    return audits, [_compare(one, two, grouping, resamples, seed) for one, two in pairs]


def _audit_model(
    scores: NodeScores,
    grouping: Grouping,
    learned: bool,
    majority: float,
    resamples: int,
    seed: int,
) -> ModelAudit:
    grouped = GroupedScores.of(grouping.member, scores.loss, scores.right)
    grouped = replace(grouped, value=grouping.value)
    drawn = resampled(grouped, resamples, seed)
    zero_one = scores.loss_kind == "zero-one"
    everything = np.zeros(len(grouped.count), np.int64)
    overall = GroupMeans.of(grouped, drawn, everything, zero_one)
    single = GroupMeans(grouped.sums(), drawn, zero_one=zero_one)
    binned = GroupMeans.of(grouped, drawn, grouping.bin_of, zero_one)
    groups, ordered = _groups(binned, grouping, scores), grouping.column.ordered
    headline, warnings = None, list(scores.warnings)
    if grouping.column.name == "degree":
        headline = low_against_rest(grouping.low, grouping.low_degree, scores.right)
    if scores.under_confident and not math.isnan(grouped.bias):
        warnings.append(
            f"the model is under-confident (temperature {scores.temperature:.2f}), and a blurred "
            "model has less bias without serving anybody better: read its bias after calibration."
        )
    return ModelAudit(
        name=scores.name,
        source=scores.source,
        format=scores.format,
        format_reason=scores.format_reason,
        loss_kind=scores.loss_kind,
        nodes=len(scores.loss),
        learned=learned,
        majority=majority,
        accuracy=overall.accuracy(0),
        loss=overall.loss(0),
        groups=groups,
        curve=[
            CurvePoint(value, label, int(count), single.loss(k), single.accuracy(k))
            for k, (value, label, count) in enumerate(
                zip(grouping.value.tolist(), grouping.labels, grouped.count, strict=True)
            )
        ],
        by_accuracy=worst_and_best(groups),
        low=headline,
        bias=grouped.bias,
        net_variance=net_variance(grouped, ordered),
        permutation=shuffled_bias(grouped, resamples, seed),
        slope=slopes(grouped, drawn) if ordered else None,
        worst=worst_nodes(scores.loss, grouping.low if headline else None, resamples, seed),
        scaling=_scaling(scores, grouped),
        warnings=warnings,
    )


def _compare(
    first: NodeScores, second: NodeScores, grouping: Grouping, resamples: int, seed: int
) -> ModelComparison:
    """Paired differences of two models on the same nodes, and paired tests of their biases."""
    low = grouping.low
    gain = 100 * (first.right - second.right)
    same_loss = first.loss_kind == second.loss_kind
    # A cross entropy cannot be compared with a count of errors, but two counts of errors can.
    one, two = (
        GroupedScores.of(grouping.member, each.loss if same_loss else 1 - each.right, each.right)
        for each in (first, second)
    )
    bias, calibrated = swapped_bias(one, two, resamples, seed), None
    if first.calibrated_loss is not None and second.calibrated_loss is not None:
        one, two = one.with_loss(first.calibrated_loss), two.with_loss(second.calibrated_loss)
        calibrated = swapped_bias(one, two, resamples, seed)
    unknown = Estimate(math.nan)
    return ModelComparison(
        first=first.name,
        second=second.name,
        nodes=len(gain),
        accuracy=paired_mean(gain),
        loss=paired_mean(first.loss - second.loss) if same_loss else unknown,
        # If all nodes have the same degree, none of them is a low-degree node.
        low_accuracy=unknown if low.all() else paired_mean(gain[low]),
        rest_accuracy=paired_mean(gain[~low]),
        bias=bias,
        calibrated_bias=calibrated,
    )


def _groups(binned: GroupMeans, grouping: Grouping, scores: NodeScores) -> list[GroupAudit]:
    """The figures of every bin."""
    node_bin = grouping.bin_of[grouping.member]
    rest = binned.others()
    groups = []
    for g, each in enumerate(grouping.bins):
        nodes = int(binned.count[g])
        calibration = None
        if scores.confidence is not None:
            confidence, right = scores.confidence[node_bin == g], scores.right[node_bin == g]
            calibration = GroupCalibration(
                confidence=100 * float(confidence.mean()),
                excess=paired_mean(100 * (confidence - right)),
                error=calibration_error(confidence, right),
            )
        groups.append(
            GroupAudit(
                **vars(each),
                nodes=nodes,
                share=100 * nodes / len(scores.loss),
                right=int(binned.right[g]),
                too_small=nodes < SMALLEST_GROUP,
                accuracy=binned.accuracy(g),
                loss=binned.loss(g),
                accuracy_against_rest=difference(binned.accuracy(g), rest.accuracy(g)),
                loss_against_rest=difference(binned.loss(g), rest.loss(g)),
                calibration=calibration,
            )
        )
    return groups


def _scaling(scores: NodeScores, grouped: GroupedScores) -> TemperatureScaling | None:
    """The bias before and after temperature scaling; None where only classes are known."""
    if scores.confidence is None:
        return None
    calibrated = scores.calibrated_loss
    return TemperatureScaling(
        temperature=scores.temperature,
        outcome=scores.outcome,
        fitted_on=scores.fitted_on,
        bias=grouped.bias,
        calibrated_bias=math.nan if calibrated is None else grouped.with_loss(calibrated).bias,
        error=calibration_error(scores.confidence, scores.right),
        under_confident=scores.under_confident,
    )
