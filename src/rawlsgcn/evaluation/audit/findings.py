"""The figures of an audit: frozen dataclasses of plain values, ready to be written as JSON.

Accuracies, shares and their differences are in per cent. A figure that is not defined is NaN,
which JSON writes as null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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

    @classmethod
    def of(cls, value: Floats, ends: Sequence[Floats], k: int = 0, by: float = 1.0) -> Estimate:
        """The figure at place ``k``, times ``by``, of arrays of values and of both ends."""
        return cls(*(by * float(each[k]) for each in (value, *ends)))


@dataclass(frozen=True)
class GroupCalibration:
    """How sure the model is of a group's nodes, and how often it is right."""

    confidence: float  #: the mean probability of the predicted class, in per cent
    excess: Estimate  #: that less the accuracy; above 0 the model is too sure
    error: float  #: the expected calibration error, in per cent


@dataclass(frozen=True)
class GroupAudit:
    """The evaluated nodes whose column (by default the degree) is in one bin."""

    label: str  #: the group's name
    low: float  #: the least value in it; NaN for groups of text
    high: float  #: the greatest value in it, likewise
    nodes: int  #: the number of its nodes
    share: float  #: their share of all evaluated nodes
    right: int  #: the number of nodes classified correctly
    too_small: bool  #: whether it has too few nodes for intervals, and is never named worst
    accuracy: Estimate  #: per cent of the nodes classified correctly
    loss: Estimate  #: the mean loss
    accuracy_against_rest: Estimate  #: the accuracy less that of all other nodes
    loss_against_rest: Estimate  #: the mean loss less that of all other nodes
    calibration: GroupCalibration | None  #: None where only classes are known
    pooled: bool = False  #: whether it has the nodes of all rare texts; never named worst


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

    ``difference`` is the higher accuracy less the lower, as in fairlearn's MetricFrame. Its
    interval holds for whichever two groups are extreme, so it covers at least 95 %.
    """

    worst: str  #: the label of the worst group
    best: str  #: the label of the best group
    difference: Estimate
    ratio: float  #: the lower accuracy over the higher


@dataclass(frozen=True)
class LowAgainstRest:
    """The headline: the nodes at or under the 25th percentile of degree against all others."""

    at_most: float  #: the highest degree of these nodes
    nodes: int  #: their number
    share: float  #: their share of all evaluated nodes
    error: Estimate  #: per cent of them classified wrongly
    rest_error: Estimate  #: the same of all others
    difference: Estimate  #: ``error`` less ``rest_error``
    ratio: Estimate  #: ``error`` over ``rest_error``
    p: float  #: the p-value of Fisher's exact test, two-sided


@dataclass(frozen=True)
class Slope:
    """The change of loss and of accuracy for each doubling of 1 + degree, over all nodes.

    ``scale`` is "one more" for the regressor log2(1 + degree), "plain" for log2 of other positive
    columns.
    """

    loss: Estimate  #: the slope of the loss
    accuracy: Estimate  #: the slope of the accuracy, in percentage points
    loss_correlation: float  #: Pearson's correlation of the loss with the same regressor
    scale: str


@dataclass(frozen=True)
class WorstNodes:
    """The nodes with the largest losses, whatever their group.

    Of nodes with equal losses each is as likely to count among the worst. ``low_share`` is NaN
    without a headline, as is ``low_share_of_all``.
    """

    percent: float  #: their share of all evaluated nodes
    nodes: int  #: their number
    loss: Estimate  #: their mean loss
    share_of_loss: float  #: their share of all loss
    low_share: float  #: per cent of them that are low-degree nodes
    low_share_of_all: float  #: per cent of all evaluated nodes that are


@dataclass(frozen=True)
class NetVariance:
    """The between-degree variance net of noise: bias = net + noise."""

    value: float  #: the estimate, or 0 if it is negative
    unbiased: float  #: the unbiased estimate, which may be negative
    noise: float  #: the bias that chance alone gives
    groups: int  #: the number of degrees
    single: int  #: how many of them have one node only


@dataclass(frozen=True)
class PermutationTest:
    """The paper's bias where degree does not matter: degrees shuffled among the nodes.

    ``p`` is (1 + #{shuffled >= seen}) / (1 + draws); it is NaN, and ``draws`` is 0, where shuffling
    cannot change the bias.
    """

    seen: float  #: the bias of the data
    mean: float  #: the mean of the shuffled biases
    low: float  #: the lower end of their middle 95 %
    high: float  #: the upper end
    p: float
    draws: int  #: how often the degrees were shuffled
    edges: list[float]  #: the edges of the bins of their histogram, one more than ``counts``
    counts: list[int]  #: the shuffled biases in each bin


@dataclass(frozen=True)
class PairedBiasTest:
    """Paired test of two biases: at every node the two models' losses may be swapped."""

    first: float  #: the bias of the first model
    second: float  #: the bias of the second
    ratio: float  #: the first over the second
    p_lower: float  #: the p-value for 'the first is not fairer'
    p_higher: float  #: the p-value for 'the second is not fairer'
    draws: int  #: how often the losses were swapped
    p: float = math.nan  #: two-sided, for 'neither is fairer': twice the smaller of the two


@dataclass(frozen=True)
class TemperatureScaling:
    """The bias before and after temperature scaling.

    ``calibrated_bias`` is NaN where the nodes do not determine the temperature;
    ``under_confident`` is whether that is so low that the bias may be low because of it.
    """

    temperature: float  #: under 1 the model was too unsure, over 1 too sure
    outcome: str  #: how the search for it ended, in a sentence
    fitted_on: str  #: which nodes it was found on
    bias: float  #: the bias before scaling
    calibrated_bias: float  #: the bias after scaling
    error: float  #: the expected calibration error before scaling, in per cent
    under_confident: bool


@dataclass(frozen=True)
class ModelAudit:
    """All figures of one model.

    ``learned`` is whether it is clearly better than always predicting the most frequent class; if
    not, there is no headline on it and no comparison.
    """

    name: str  #: the model's name
    source: str  #: the file or array that its predictions come from
    format: str  #: what they were taken for: "probabilities", "logits" or "classes"
    format_reason: str  #: why
    loss_kind: str  #: "cross entropy", or "zero-one" where only classes are known
    nodes: int  #: the number of evaluated nodes
    learned: bool
    majority: float  #: per cent of the nodes of the most frequent class
    accuracy: Estimate  #: per cent of all nodes classified correctly
    loss: Estimate  #: the mean loss of all nodes
    groups: list[GroupAudit]  #: the figures of every group
    curve: list[CurvePoint]  #: the figures of every single value (degree)
    by_accuracy: GroupGap | None  #: the worst and the best group; None for fewer than two
    low: LowAgainstRest | None  #: low-degree nodes against the rest; None for other columns
    bias: float  #: the paper's bias
    net_variance: NetVariance  #: the bias net of noise
    permutation: PermutationTest  #: the bias with the degrees shuffled
    slope: Slope | None  #: the trend with degree; None for text
    worst: list[WorstNodes]  #: the nodes with the largest losses
    scaling: TemperatureScaling | None  #: None where only classes are known
    warnings: list[str]  #: sentences for the user


@dataclass(frozen=True)
class ModelComparison:
    """Two models on the same nodes; differences are the first's less the second's.

    ``calibrated_bias`` is None where only classes are known, or the temperature of one of the
    models is not.
    """

    first: str  #: the name of the first model
    second: str  #: the name of the second
    nodes: int  #: the number of evaluated nodes
    accuracy: Estimate  #: the difference of the accuracies
    loss: Estimate  #: the difference of the mean losses
    low_accuracy: Estimate  #: the difference of the accuracies on low-degree nodes
    rest_accuracy: Estimate  #: the difference of the accuracies on all others
    bias: PairedBiasTest  #: the test of the biases
    calibrated_bias: PairedBiasTest | None  #: the same after temperature scaling
