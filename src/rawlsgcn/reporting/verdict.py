"""What the numbers say, in plain words that hold whichever way the numbers point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..evaluation.degree_bias import node_scores
from .formatting import names, percent, plural, several

if TYPE_CHECKING:
    from ..experiments.result import Result

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """A headline, and a sentence or two for every method."""

    headline: str
    sentences: list[str]


@dataclass(frozen=True)
class Difference:
    """A difference of accuracies in percentage points, with its 95 % interval.

    The interval (normal approximation) speaks of the choice of evaluated nodes; a node's
    correctness is averaged over the runs first.
    """

    points: float
    margin: float

    @classmethod
    def between(cls, these: Floats, those: Floats) -> Difference:
        """The mean of ``these`` nodes less that of ``those``, two separate groups."""
        error = math.sqrt(_error(these) ** 2 + _error(those) ** 2)
        return cls(float(these.mean() - those.mean()), 1.96 * error)

    @classmethod
    def paired(cls, after: Floats, before: Floats) -> Difference:
        """The change of the same nodes from one method to another."""
        return cls(float((after - before).mean()), 1.96 * _error(after - before))

    @property
    def clear(self) -> int:
        """1 or -1 where the interval leaves out zero, else 0."""
        if not abs(self.points) > self.margin:
            return 0
        return 1 if self.points > 0 else -1

    @property
    def reversed(self) -> Difference:
        return Difference(-self.points, self.margin)

    @property
    def interval(self) -> str:
        low, high = self.points - self.margin, self.points + self.margin
        return f"95 % interval {percent(low)} to {percent(high)}"

    def __str__(self) -> str:
        return f"{'+' if self.points > 0 else ''}{percent(self.points)}"


@dataclass(frozen=True)
class Quarters:
    """The evaluated nodes of the lowest and of the highest quarter of degrees."""

    at_most: int
    at_least: int
    low: npt.NDArray[np.bool_]
    high: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, result: Result) -> Quarters:
        nodes = result.mask & (result.graph.y >= 0)
        degree = result.degree[nodes].numpy()
        low, high = np.percentile(degree, [25, 75])
        return cls(math.floor(low), math.ceil(high), degree <= low, degree >= high)

    @property
    def apart(self) -> bool:
        """Whether the two groups share no node: not so where most degrees are the same."""
        return self.at_most < self.at_least

    @property
    def low_words(self) -> str:
        if self.at_most == 0:
            return f"nodes without neighbours ({100 * self.low.mean():.0f} % of those evaluated)"
        return (
            f"nodes with at most {plural(self.at_most, 'neighbour')} "
            f"({100 * self.low.mean():.0f} % of those evaluated)"
        )

    @property
    def high_words(self) -> str:
        return (
            f"nodes with at least {plural(self.at_least, 'neighbour')} "
            f"({100 * self.high.mean():.0f} %)"
        )


def verdict(results: Sequence[Result]) -> Verdict:
    """The verdict on results of one graph; others are held against the GCN, or else the first.

    A method that failed (diverged, or has not learned) is held against none, and none against it.
    """
    base = next((i for i, result in enumerate(results) if result.method == "gcn"), 0)
    order = [base, *(i for i in range(len(results)) if i != base)]
    named = names(results)
    failures = [results[i].failure_of(named[i]) for i in order]
    told = [f"{each} No headline and no comparison rests on it." for each in failures if each]
    learned = [i for i, failure in zip(order, failures, strict=True) if failure is None]
    labels = [named[i] for i in learned]
    right = [correctness(results[i]) for i in learned]
    quarters = Quarters.of(results[base])
    if base not in learned:
        headline = f"{named[base]} {results[base].failed}"
        headline += ", so nothing is compared with it" if len(results) > 1 else ""
        if quarters.apart:
            told += [
                _alone(label, each, quarters) for label, each in zip(labels, right, strict=True)
            ]
        return Verdict(headline, told)
    if not quarters.apart:
        return Verdict(
            f"Most evaluated nodes have the same degree ({quarters.at_most:,})",
            [
                "There are no low- and high-degree quarters to compare. Accuracy is "
                + several(
                    [
                        f"{percent(each.mean())} % with {label}"
                        for label, each in zip(labels, right, strict=True)
                    ]
                )
                + ".",
                *told,
            ],
        )
    sentences = [_alone(labels[0], right[0], quarters)]
    changes = [Difference.paired(each[quarters.low], right[0][quarters.low]) for each in right[1:]]
    for label, each, change in zip(labels[1:], right[1:], changes, strict=True):
        sentences.append(_against(label, each, labels[0], right[0], quarters, change))
    headline = (
        _headline(labels[0], labels[1:], changes) if changes else _verdict_on(right[0], quarters)
    )
    if not changes and len(results) > 1:
        headline = f"With {labels[0]}, {headline[0].lower()}{headline[1:]}"
    return Verdict(headline, [*sentences, *told])


def correctness(result: Result) -> Floats:
    """How often, in per cent of the runs, each evaluated node is classified correctly."""
    nodes = result.mask & (result.graph.y >= 0)
    labels = result.graph.y[nodes]
    runs = [node_scores(logits[nodes], labels)[1].numpy() for logits in result.logits]
    mean: Floats = 100 * np.mean(runs, axis=0)
    return mean


def _headline(base: str, others: list[str], changes: list[Difference]) -> str:
    better = [name for name, change in zip(others, changes, strict=True) if change.clear > 0]
    worse = [name for name, change in zip(others, changes, strict=True) if change.clear < 0]
    parts = []
    if better:
        parts.append(f"{several(better)} {_serve(better)} low-degree nodes better than {base}")
    if worse:
        parts.append(f"{several(worse)} {_serve(worse)} low-degree nodes worse than {base}")
    if parts:
        return "; ".join(parts)
    if len(others) == 1:
        return f"{others[0]} makes no clear difference to low-degree nodes, compared with {base}"
    return f"No method makes a clear difference to low-degree nodes, compared with {base}"


def _serve(who: list[str]) -> str:
    return "serves" if len(who) == 1 else "serve"


def _verdict_on(right: Floats, quarters: Quarters) -> str:
    gap = Difference.between(right[quarters.high], right[quarters.low])
    if gap.clear > 0:
        return "Low-degree nodes are worse off"
    if gap.clear < 0:
        return "Low-degree nodes are better off"
    return "Low- and high-degree nodes are served about equally, as far as these nodes can tell"


def _alone(name: str, right: Floats, quarters: Quarters) -> str:
    low, high = right[quarters.low], right[quarters.high]
    gap = Difference.between(high, low)
    judgement = {
        1: f"the low-degree nodes are behind by {percent(gap.points)} points ({gap.interval})",
        -1: f"the low-degree nodes are ahead by {percent(-gap.points)} points "
        f"({gap.reversed.interval})",
        0: f"a gap of {percent(gap.points)} points, which may be chance ({gap.interval})",
    }[gap.clear]
    return (
        f"With {name}, {quarters.low_words} are classified correctly "
        f"{percent(low.mean())} % of the time and {quarters.high_words} "
        f"{percent(high.mean())} % of the time: {judgement}."
    )


def _against(
    name: str, right: Floats, base: str, before: Floats, quarters: Quarters, change: Difference
) -> str:
    """One method held against the base: both quarters, whose gain it is, and the price."""
    low, high = right[quarters.low], right[quarters.high]
    gap = float(high.mean() - low.mean())
    gap_before = float(before[quarters.high].mean() - before[quarters.low].mean())
    top = Difference.paired(high, before[quarters.high])
    whole = Difference.paired(right, before)
    effect = {
        1: f"low-degree nodes gain {percent(change.points)} points over {base} ({change.interval})",
        -1: f"low-degree nodes lose {percent(-change.points)} points against {base} "
        f"({change.reversed.interval})",
        0: f"no clear change for low-degree nodes against {base} "
        f"({change} points, {change.interval})",
    }[change.clear]
    sentence = (
        f"With {name} it is {percent(low.mean())} % and {percent(high.mean())} %: {effect}, "
        f"and the gap goes from {percent(gap_before)} to {percent(gap)} points. "
        f"Accuracy on all evaluated nodes is {percent(right.mean())} % "
        f"against {percent(before.mean())} %"
    )
    sentence += "" if whole.clear else ", no clear difference"
    if abs(gap) < abs(gap_before) and change.clear <= 0 and top.clear < 0:
        sentence += (
            ". The gap is smaller because high-degree nodes lost, "
            "not because low-degree nodes gained"
        )
    return f"{sentence}."


def _error(values: Floats) -> float:
    """The standard error of the mean; of a single value there is none."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1)) / math.sqrt(len(values))
