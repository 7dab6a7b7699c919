"""What an audit finds, piece by piece: frozen, plain, and ready to be written as JSON.

Accuracies, shares and their differences are in per cent. A figure that is not defined is NaN,
which JSON writes as null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval; the ends are NaN where the nodes are too few to say."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def clear(self) -> int:
        """1 or -1 where the interval leaves out zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True)
class GroupCalibration:
    """How sure the model is of a group's nodes against how often it is right.

    ``confidence`` is the mean probability of the predicted class, ``excess`` that less the
    accuracy (above 0: too sure), ``error`` the expected calibration error; all in per cent.
    """

    confidence: float
    excess: Estimate
    error: float


@dataclass(frozen=True)
class GroupAudit:
    """The evaluated nodes whose column (degree, unless told otherwise) is in one bin.

    ``low`` and ``high`` are the least and the greatest value in it (both included; NaN for
    groups of text). The two ``…_against_rest`` are this group's figure less that of all other
    nodes. A group that is ``too_small`` has no intervals and is never named worst; neither is the
    ``pooled`` one, which holds the nodes of all texts that are too rare to stand alone.
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
    """One value of the column (one degree) on the curve; no intervals under a few nodes."""

    value: float
    label: str
    nodes: int
    loss: Estimate
    accuracy: Estimate


@dataclass(frozen=True)
class GroupGap:
    """The worst and the best group by one figure (not counting groups that are too small).

    ``difference`` is the larger mean less the smaller, ``ratio`` the smaller over the larger, as
    fairlearn's MetricFrame has them. The interval holds for whichever two groups came out extreme,
    so it covers at least 95 %.
    """

    worst: str
    best: str
    difference: Estimate
    ratio: float


@dataclass(frozen=True)
class LowAgainstRest:
    """The headline: the nodes at or under ``at_most`` (25th percentile) against all others.

    ``error`` and ``rest_error`` are per cent wrong; ``ratio`` is the first over the second,
    ``difference`` the first less the second; ``p`` is Fisher's exact test, two-sided.
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
class PermutationTest:
    """The paper's bias where degree does not matter: degrees shuffled among the nodes.

    ``edges`` (one more than ``counts``) and ``counts`` are the histogram of the shuffled biases,
    ``low`` and ``high`` their middle 95 %. p = (1 + #{shuffled >= seen}) / (1 + draws).
    Where shuffling cannot change the bias, ``draws`` is 0 and p is NaN.
    """

    seen: float
    mean: float
    low: float
    high: float
    p: float
    draws: int
    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class NetVariance:
    """The between-degree variance net of noise: bias = net + noise.

    ``unbiased`` may be negative, ``value`` is the larger of it and 0. ``noise`` is the bias that
    chance alone gives. ``single`` of the ``groups`` have one node only.
    """

    value: float
    unbiased: float
    noise: float
    groups: int
    single: int


@dataclass(frozen=True)
class Slope:
    """Change of loss and of accuracy (points) for each doubling of 1 + degree, over all nodes.

    The regressor is log2(1 + degree) (``scale`` "one more"), or log2 of other positive columns
    ("plain"). ``…_correlation`` is Pearson's with the same regressor.
    """

    loss: Estimate
    accuracy: Estimate
    loss_correlation: float
    accuracy_correlation: float
    scale: str


@dataclass(frozen=True)
class WorstNodes:
    """The Rawlsian question: the mean loss of the worst ``percent`` of the nodes.

    ``share_of_loss`` is their part of all loss; ``low_share`` the per cent of them that are
    low-degree nodes (of the headline), against ``low_share_of_all`` among all nodes; both
    are NaN without that headline. Of nodes of equal loss each counts as likely as the others.
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

    ``fitted_on`` says which nodes the temperature was found on; ``outcome`` is a sentence.
    """

    temperature: float
    outcome: str
    fitted_on: str
    bias: float
    calibrated_bias: float
    net_variance: float
    calibrated_net_variance: float
    error: float
    under_confident: bool


@dataclass(frozen=True)
class ModelAudit:
    """One model, judged.

    ``format`` is what its predictions were taken for ("probabilities", "logits" or "classes") and
    ``format_reason`` why. ``loss_kind`` is "cross entropy", or "zero-one" where only classes are
    known (then ``scaling`` and the groups' calibration are None). ``majority`` is the per cent of
    the nodes that are of the most frequent class, and ``learned`` says whether the model is clearly
    better than always predicting that: if not, no headline and no comparison rests on it.
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
    by_loss: GroupGap | None
    low: LowAgainstRest | None
    bias: float
    net_variance: NetVariance
    permutation: PermutationTest
    slope: Slope | None
    worst: list[WorstNodes]
    scaling: TemperatureScaling | None
    warnings: list[str]


@dataclass(frozen=True)
class PairedBiasTest:
    """Paired test of two biases: at every node the two models' losses may change places.

    ``ratio`` is the first's bias over the second's. ``p_lower`` is for 'the first is not fairer',
    ``p_higher`` for 'the second is not fairer'; both with the +1 correction. ``p`` is two-sided,
    for 'neither is fairer': twice the smaller of them.
    """

    first: float
    second: float
    ratio: float
    p_lower: float
    p_higher: float
    draws: int
    p: float = math.nan


@dataclass(frozen=True)
class ModelComparison:
    """Two models on the same ``nodes``; differences are the first's less the second's.

    Models that have not ``learned`` are not compared.
    """

    first: str
    second: str
    nodes: int
    accuracy: Estimate
    loss: Estimate
    low_accuracy: Estimate
    bias: PairedBiasTest
    calibrated_bias: PairedBiasTest | None


@dataclass(frozen=True)
class Provenance:
    """How it was computed, for the reader and for whoever repeats it."""

    version: str
    seed: int
    resamples: int
    level: float
    by: str
    bins: str
    bias_over: str
    evaluated: str
    graph_nodes: int
    graph_edges: int
    graph_features: bool
    nodes: int
    smallest_group: int
    files: dict[str, str]
    command: str | None
    seconds: float


@dataclass(frozen=True)
class ShownPredictions:
    """Of the shown nodes, in the same order: what one model said of them (None: nothing)."""

    name: str
    predicted: list[int | None]
    loss: list[float | None]


@dataclass(frozen=True)
class ShownNodes:
    """Single nodes for the explorer: all evaluated ones, or a sample of them (``of`` in all)."""

    of: int
    id: list[int | str]
    value: list[float | str]
    degree: list[int]
    label: list[int]
    models: list[ShownPredictions]
