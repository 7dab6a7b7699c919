"""Which members the answer is the mean of, and with which weights.

Greedy selection (Caruana et al., *Ensemble Selection from Libraries of Models*, ICML 2004): the
best member first, then again and again the one that lowers the loss of the mean most. A member
can be taken several times, which gives it a larger weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...methods.ensemble import EnsembleRun
from .judge import Judge
from .pool import Member

#: How many times a member is taken at most.
STEPS = 10
#: Validation nodes by which weights are chosen at most: of more, so many are taken.
MOST_NODES = 10_000


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Members with their weights.

    Attributes:
        members: The members, the first chosen one first.
        weights: Their weights, which sum to one.
    """

    members: tuple[Member, ...]
    weights: tuple[float, ...]

    @property
    def probabilities(self) -> Tensor:
        """The weighted mean of the members' class probabilities, (nodes, classes)."""
        pairs = zip(self.members, self.weights, strict=True)
        return torch.stack([weight * member.probabilities for member, weight in pairs]).sum(0)

    def weight(self, member: Member) -> float:
        """The weight of a member; 0 if it is not among them."""
        return dict(zip(self.members, self.weights, strict=True)).get(member, 0.0)

    def runs(self) -> list[EnsembleRun]:
        """The runs of all members, each with its weight."""
        pairs = zip(self.members, self.weights, strict=True)
        return [run for member, weight in pairs for run in member.ensemble_runs(weight)]

    def states(self) -> list[dict[str, Tensor]]:
        """The weights of the networks of these runs."""
        return [state for member in self.members for state in member.states]


def select(members: Sequence[Member], judge: Judge) -> WeightedMean:
    """Choose members and their weights by the validation nodes.

    The mean is the one with the lowest loss among those of the first 1 to 10 steps: it is never
    worse on these nodes than the best member alone.
    """
    judge = judge.sample(MOST_NODES)
    each = [member.probabilities[judge.nodes].double() for member in members]
    total, taken, losses = torch.zeros_like(each[0]), [], []
    for step in range(1, STEPS + 1):
        found = [judge.rank((total + one) / step) for one in each]
        place = min(range(len(found)), key=found.__getitem__)
        total = total + each[place]
        taken.append(members[place])
        losses.append(found[place])
    count = 1 + min(range(len(losses)), key=losses.__getitem__)
    chosen = Counter(taken[:count])
    return WeightedMean(tuple(chosen), tuple(times / count for times in chosen.values()))
