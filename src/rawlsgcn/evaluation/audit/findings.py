"""The figures of an audit: frozen dataclasses of plain values, ready to be written as JSON.

Accuracies, shares and their differences are in per cent. A figure that is not defined is NaN,
which JSON writes as null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .net_variance import NetVariance
from .permutation_tests import PairedBiasTest, PermutationTest


@dataclass(frozen=True)
class Estimate:
    """A figure with its confidence interval; the ends are NaN where there are too few nodes."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def clear(self) -> int:
        """1 or -1 where the interval excludes zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low)


@dataclass(frozen=True)
class GroupCalibration:
    """How sure the model is of a group's nodes, and how often it is right.

    Attributes:
        confidence: The mean probability of the predicted class, in per cent.
        excess: That less the accuracy; above 0 the model is too sure.
        error: The expected calibration error, in per cent.
    """

    confidence: float
    excess: Estimate
    error: float


@dataclass(frozen=True)
class GroupAudit:
    """The evaluated nodes whose column (by default the degree) is in one bin.

    Attributes:
        label: The group's name.
        low: The least value in it; NaN for groups of text.
        high: The greatest value in it, likewise.
        nodes: The number of its nodes.
        share: Their share of all evaluated nodes.
        right: The number of nodes classified correctly.
        too_small: Whether it has too few nodes for intervals, and is never named worst.
        accuracy: Per cent of the nodes classified correctly.
        loss: The mean loss.
        accuracy_against_rest: The accuracy less that of all other nodes.
        loss_against_rest: The mean loss less that of all other nodes.
        calibration: None where only classes are known.
        pooled: Whether it has the nodes of all rare texts; it is then never named worst.
    """

    label: str
    low: float
    high: float
    nodes: int
    share: float
    right: int
    too_small: bool
    accuracy: Estimate
    loss: Estimate
    accuracy_against_rest: Estimate
    loss_against_rest: Estimate
    calibration: GroupCalibration | None
    pooled: bool = False


@dataclass(frozen=True)
class CurvePoint:
    """The nodes of one value of the column (one degree)."""

    value: float
    label: str
    nodes: int
    loss: Estimate
    accuracy: Estimate


@dataclass(frozen=True)
class GroupGap:
    """The groups of lowest and of highest accuracy, of those that are large enough.

    Attributes:
        worst: The label of the worst group.
        best: The label of the best group.
        difference: The higher accuracy less the lower, as in fairlearn's MetricFrame. The interval
            holds for whichever two groups are extreme, so it covers at least 95 %.
        ratio: The lower accuracy over the higher.
    """

    worst: str
    best: str
    difference: Estimate
    ratio: float


@dataclass(frozen=True)
class LowAgainstRest:
    """The headline: the nodes at or under the 25th percentile of degree against all others.

    Attributes:
        at_most: The highest degree of these nodes.
        nodes: Their number.
        share: Their share of all evaluated nodes.
        error: Per cent of them classified wrongly.
        rest_error: The same of all others.
        difference: ``error`` less ``rest_error``.
        ratio: ``error`` over ``rest_error``.
        p: The p-value of Fisher's exact test, two-sided.
    """

    at_most: float
    nodes: int
    share: float
    error: Estimate
    rest_error: Estimate
    difference: Estimate
    ratio: Estimate
    p: float


@dataclass(frozen=True)
class Slope:
    """The change of loss and of accuracy for each doubling of 1 + degree, over all nodes.

    Attributes:
        loss: The slope of the loss.
        accuracy: The slope of the accuracy, in percentage points.
        loss_correlation: Pearson's correlation of the loss with the same regressor.
        scale: "one more" for the regressor log2(1 + degree), "plain" for log2 of other positive
            columns.
    """

    loss: Estimate
    accuracy: Estimate
    loss_correlation: float
    scale: str


@dataclass(frozen=True)
class WorstNodes:
    """The nodes with the largest losses, whatever their group.

    Attributes:
        percent: Their share of all evaluated nodes.
        nodes: Their number.
        loss: Their mean loss.
        share_of_loss: Their share of all loss.
        low_share: Per cent of them that are low-degree nodes, each of several equal losses being
            as likely; NaN without a headline.
        low_share_of_all: Per cent of all evaluated nodes that are.
    """

    percent: float
    nodes: int
    loss: Estimate
    share_of_loss: float
    low_share: float
    low_share_of_all: float


@dataclass(frozen=True)
class TemperatureScaling:
    """The bias before and after temperature scaling.

    Attributes:
        temperature: Under 1 the model was too unsure, over 1 too sure.
        outcome: How the search for it ended, in a sentence.
        fitted_on: Which nodes it was found on.
        bias: The bias before scaling.
        calibrated_bias: The bias after scaling; NaN where the nodes do not determine the
            temperature.
        error: The expected calibration error before scaling, in per cent.
        under_confident: Whether the temperature is so low that the bias may be low because of that.
    """

    temperature: float
    outcome: str
    fitted_on: str
    bias: float
    calibrated_bias: float
    error: float
    under_confident: bool


@dataclass(frozen=True)
class ModelAudit:
    """All figures of one model.

    Attributes:
        name: The model's name.
        source: The file or array that its predictions come from.
        format: What they were taken for: "probabilities", "logits" or "classes".
        format_reason: Why.
        loss_kind: "cross entropy", or "zero-one" where only classes are known.
        nodes: The number of evaluated nodes.
        learned: Whether the model is clearly better than always predicting the most frequent class;
            if not, there is no headline on it and no comparison.
        majority: Per cent of the nodes of the most frequent class.
        accuracy: Per cent of all nodes classified correctly.
        loss: The mean loss of all nodes.
        groups: The figures of every group.
        curve: The figures of every single value (degree).
        by_accuracy: The worst and the best group; None for fewer than two.
        low: Low-degree nodes against the rest; None for other columns than degree.
        bias: The paper's bias.
        net_variance: The bias net of noise.
        permutation: The bias with the degrees shuffled.
        slope: The trend with degree; None for text.
        worst: The nodes with the largest losses.
        scaling: The bias after temperature scaling; None where only classes are known.
        warnings: Sentences for the user.
    """

    name: str
    source: str
    format: str
    format_reason: str
    loss_kind: str
    nodes: int
    learned: bool
    majority: float
    accuracy: Estimate
    loss: Estimate
    groups: list[GroupAudit]
    curve: list[CurvePoint]
    by_accuracy: GroupGap | None
    low: LowAgainstRest | None
    bias: float
    net_variance: NetVariance
    permutation: PermutationTest
    slope: Slope | None
    worst: list[WorstNodes]
    scaling: TemperatureScaling | None
    warnings: list[str]


@dataclass(frozen=True)
class ModelComparison:
    """Two models on the same nodes; differences are the first's less the second's.

    Attributes:
        first: The name of the first model.
        second: The name of the second.
        nodes: The number of evaluated nodes.
        accuracy: The difference of the accuracies.
        loss: The difference of the mean losses.
        low_accuracy: The difference of the accuracies on low-degree nodes.
        rest_accuracy: The difference of the accuracies on all others.
        bias: The test of the biases.
        calibrated_bias: The same after temperature scaling; None where only classes are known, or
            the temperature of one of them is not.
    """

    first: str
    second: str
    nodes: int
    accuracy: Estimate
    loss: Estimate
    low_accuracy: Estimate
    rest_accuracy: Estimate
    bias: PairedBiasTest
    calibrated_bias: PairedBiasTest | None
