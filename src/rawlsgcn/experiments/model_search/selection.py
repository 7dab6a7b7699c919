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

    def loss(self, probabilities: Tensor) -> float:
        """Compute the cross entropy after temperature scaling.

        It is far less noisy than the accuracy on a few hundred nodes. Probabilities that are not
        finite have an infinite loss.
        """
        return self.loss_of(probabilities[self.nodes].double())

    def loss_of(self, probabilities: Tensor) -> float:
        """:meth:`loss` of the probabilities of the validation nodes alone, in float64."""
        scores = scores_of(probabilities)
        if not all_finite([scores]):
            return math.inf
        scaled = scores / temperature(scores, self.y).value
        return float(node_scores(scaled, self.y)[0].mean())

    def rank(self, probabilities: Tensor) -> tuple[float, float]:
        """What members and means are compared by, as for :meth:`loss_of`: the lower, the better.

        The loss, and the cross entropy without temperature scaling. The second decides between
        predictions that separate the validation nodes: a low enough temperature makes the loss
        of each of them as small as one likes.
        """
        plain = float(node_scores(scores_of(probabilities), self.y)[0].mean())
        loss = max(self.loss_of(probabilities), LEAST_LOSS)
        return loss, math.inf if math.isnan(plain) else plain

    def temperature(self, probabilities: Tensor) -> float:
        """What the logits of a mean are divided by; 1 if the nodes do not determine it well."""
        found = precise_temperature(scores_of(probabilities), self.y)
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
    total, taken, losses = torch.zeros_like(each[0]), [], []
    for step in range(1, STEPS + 1):
        found = [judge.rank((total + one) / step) for one in each]
        place = min(range(len(found)), key=found.__getitem__)
        total = total + each[place]
        taken.append(place)
        losses.append(found[place])
    count = 1 + min(range(len(losses)), key=losses.__getitem__)
    return {place: times / count for place, times in Counter(taken[:count]).items()}
