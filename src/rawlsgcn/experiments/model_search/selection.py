"""The validation nodes as a judge, by which ``auto`` chooses everything, and the weights of a mean.

Weights are selected greedily (Caruana et al., *Ensemble Selection from Libraries of Models*, ICML
2004): the best member first, then again and again the one that lowers the loss of the mean most. A
member can be taken several times, which gives it a larger weight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...evaluation.calibration import CalibrationOutcome, precise_temperature, temperature
from ...evaluation.degree_bias import node_scores
from ...methods.base import accuracy_of, all_finite
from ...methods.ensemble import scores_of
from ...training import TrainedRun

#: How many times a member is taken at most.
STEPS = 10
#: Validation nodes by which weights are chosen at most: of more, so many are taken.
MOST_NODES = 10_000
#: A loss below this is as good as none: of so few and so easy nodes it says nothing more.
LEAST_LOSS = 1e-3


class Losses(NamedTuple):
    """The cross entropy on the validation nodes after temperature scaling, and without it."""

    scaled: float
    plain: float

    @property
    def rank(self) -> tuple[float, float]:
        """What members and means are compared by: the lower, the better.

        The plain loss decides between predictions that separate the validation nodes: a low enough
        temperature makes the scaled loss of each of them as small as one likes.
        """
        return max(self.scaled, LEAST_LOSS), self.plain


@dataclass(frozen=True)
class Judge:
    """The numbers of the labeled validation nodes, and their classes."""

    nodes: Tensor
    y: Tensor

    def sample(self, most: int) -> Judge:
        """The same with at most so many nodes, evenly spaced among all."""
        if len(self.nodes) <= most:
            return self
        places = torch.linspace(0, len(self.nodes) - 1, most, dtype=torch.float64).long()
        return Judge(self.nodes[places], self.y[places])

    def accuracy(self, scores: Tensor) -> float:
        """Compute the accuracy of logits or probabilities; NaN if one of them is not finite."""
        return accuracy_of(scores[self.nodes], self.y)

    def losses(self, probabilities: Tensor) -> Losses:
        """Compute the cross entropy with and without temperature scaling.

        It is far less noisy than the accuracy on a few hundred nodes. Probabilities that are not
        finite have infinite losses.
        """
        scores = scores_of(probabilities[self.nodes].double())
        if not all_finite([scores]):
            return Losses(math.inf, math.inf)
        scaled = scores / temperature(scores, self.y).value
        return Losses(*(float(node_scores(each, self.y)[0].mean()) for each in (scaled, scores)))

    def temperature(self, probabilities: Tensor) -> float:
        """What the logits of a mean are divided by; 1 if the nodes do not determine it well."""
        found = precise_temperature(scores_of(probabilities[self.nodes].double()), self.y)
        return found.value if found.outcome is CalibrationOutcome.FOUND else 1.0

    def best(self, runs: Sequence[TrainedRun], count: int) -> list[int]:
        """The places of the runs with the highest accuracy; never of one that diverged."""
        accuracy = [self.accuracy(run.logits) for run in runs]
        sound = [place for place, value in enumerate(accuracy) if math.isfinite(value)]
        return sorted(sound, key=lambda place: -accuracy[place])[:count]


def greedy_weights(probabilities: Sequence[Tensor], judge: Judge) -> dict[int, float]:
    """Choose which members a mean has, the first chosen one first, and with which weights.

    The members are given by their class ``probabilities``, and in the result by their places. The
    mean is the one with the lowest loss among those of the first 1 to 10 steps: it is never worse
    on the validation nodes than the best member alone.
    """
    judge = judge.sample(MOST_NODES)
    each = [one[judge.nodes].double() for one in probabilities]
    judge = Judge(torch.arange(len(judge.y)), judge.y)
    total, taken, ranks = torch.zeros_like(each[0]), [], []
    for step in range(1, STEPS + 1):
        found = [judge.losses((total + one) / step).rank for one in each]
        place = found.index(min(found))
        total = total + each[place]
        taken.append(place)
        ranks.append(found[place])
    count = 1 + ranks.index(min(ranks))
    return {place: times / count for place, times in Counter(taken[:count]).items()}
