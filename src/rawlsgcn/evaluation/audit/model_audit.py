"""One model judged: everything that an audit says about it, from its nodes' scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..calibration import calibration_error
from .findings import CurvePoint, GroupAudit, GroupCalibration, ModelAudit, TemperatureScaling
from .group_statistics import GroupedScores
from .grouping import Grouping
from .intervals import SMALLEST, GroupMeans, difference, paired_mean
from .net_variance import net_variance
from .node_scores import NodeScores
from .permutation import shuffled_bias
from .resampling import resampled
from .trend import slopes
from .worst_off import low_against_rest, worst_and_best, worst_nodes

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ResamplingSettings:
    """How an audit is computed."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95


def audit_model(scores: NodeScores, grouping: Grouping, settings: ResamplingSettings) -> ModelAudit:
    """Judge one model on the evaluated nodes of ``grouping``."""
    grouped = replace(
        GroupedScores.of(grouping.value, scores.loss, scores.right), value=grouping.numbers
    )
    drawn = resampled(grouped, settings.resamples, settings.seed)
    level, zero_one = settings.level, scores.loss_kind == "zero-one"
    fine = GroupMeans(grouped.sums(), drawn, level, zero_one)
    binned = GroupMeans.of(grouped, drawn, grouping.bin_of, level, zero_one)
    overall = GroupMeans.of(grouped, drawn, np.zeros(len(grouped.count), np.int64), level, zero_one)
    groups = _groups(binned, grouping, scores, settings)
    headline = (
        low_against_rest(grouping.degree, scores.right, level) if grouping.by_degree else None
    )
    low = grouping.degree <= headline.at_most if headline else None
    net = net_variance(grouped, grouping.ordered)
    by_accuracy = worst_and_best(groups, "accuracy", level, highest=100.0)
    by_loss = worst_and_best(groups, "loss", level, highest=1.0 if zero_one else math.inf)
    return ModelAudit(
        name=scores.name,
        source=scores.source,
        format=scores.format,
        format_reason=scores.format_reason,
        loss_kind=scores.loss_kind,
        nodes=len(scores.loss),
        learned=scores.learned,
        majority=scores.majority,
        accuracy=overall.accuracy(0),
        loss=overall.loss(0),
        groups=groups,
        curve=[
            CurvePoint(
                float(grouping.numbers[k]),
                label,
                int(grouped.count[k]),
                fine.loss(k),
                fine.accuracy(k),
            )
            for k, label in enumerate(grouping.labels)
        ],
        by_accuracy=by_accuracy,
        by_loss=by_loss,
        low=headline,
        bias=grouped.bias,
        net_variance=net,
        permutation=shuffled_bias(grouped, settings.resamples, settings.seed, settings.level),
        slope=slopes(grouped, drawn, settings.level) if grouping.ordered else None,
        worst=worst_nodes(scores.loss, low, settings.resamples, settings.seed, settings.level),
        scaling=_scaling(scores, grouped, net.value, grouping.ordered),
        warnings=[*scores.warnings, *_cautions(scores, grouped.bias)],
    )


def _groups(
    binned: GroupMeans, grouping: Grouping, scores: NodeScores, settings: ResamplingSettings
) -> list[GroupAudit]:
    node_bin = grouping.bin_of[grouping.value]
    rest = binned.others()
    groups = []
    for g, each in enumerate(grouping.bins):
        nodes = int(binned.count[g])
        too_small = nodes < SMALLEST
        calibration = None
        if scores.confidence is not None:
            inside = node_bin == g
            calibration = _group_calibration(
                scores.confidence[inside], scores.right[inside], settings.level
            )
        groups.append(
            GroupAudit(
                label=each.label,
                low=each.low,
                high=each.high,
                nodes=nodes,
                share=100 * nodes / len(scores.loss),
                right=int(binned.right[g]),
                too_small=too_small,
                accuracy=binned.accuracy(g),
                loss=binned.loss(g),
                accuracy_against_rest=difference(binned.accuracy(g), rest.accuracy(g)),
                loss_against_rest=difference(binned.loss(g), rest.loss(g)),
                calibration=calibration,
                pooled=each.pooled,
            )
        )
    return groups


def _group_calibration(confidence: Floats, right: Floats, level: float) -> GroupCalibration:
    """One group's confidence, its excess over accuracy with an interval, and its error."""
    excess = paired_mean(100 * (confidence - right), level)
    return GroupCalibration(
        100 * float(confidence.mean()), excess, calibration_error(confidence, right)
    )


def _scaling(
    scores: NodeScores, grouped: GroupedScores, net: float, ordered: bool
) -> TemperatureScaling | None:
    if scores.calibrated_loss is None or scores.confidence is None:
        return None
    scaled = grouped.with_loss(scores.calibrated_loss)
    after = net_variance(scaled, ordered)
    return TemperatureScaling(
        temperature=scores.temperature,
        outcome=scores.outcome,
        fitted_on=scores.fitted_on,
        bias=grouped.bias,
        calibrated_bias=scaled.bias,
        net_variance=net,
        calibrated_net_variance=after.value,
        error=calibration_error(scores.confidence, scores.right),
        under_confident=scores.under_confident,
    )


def _cautions(scores: NodeScores, bias: float) -> list[str]:
    if not scores.under_confident or math.isnan(bias):
        return []
    return [
        f"the model is under-confident (temperature {scores.temperature:.2f}), and a blurred model "
        "has less bias without serving anybody better: read its bias after calibration."
    ]
