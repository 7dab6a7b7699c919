"""Whether a model says anything about the judged nodes that a constant answer would not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from ..learning import Learning
from .intervals import normal_quantile

Ints = npt.NDArray[np.int64]
LEAST_KAPPA = 0.1
"""The least agreement with the labels of a model that is not right more often than a constant."""


def has_learned(predicted: Ints, y: Ints) -> tuple[bool, float]:
    """Whether ``predicted`` is clearly better than a constant answer, and what that reaches.

    The second is the per cent of the nodes that are of the most frequent class. Better is what is
    right clearly more often (:attr:`~rawlsgcn.evaluation.learning.Learning.learned`). Where classes
    are very uneven, a useful model may not be: it counts as better, too, if its answers go
    with the labels, by Cohen's kappa with p_c and q_c the shares of class c in both,

        κ = (accuracy - e) / (1 - e),   e = Σ_c p_c q_c,

    at least ``LEAST_KAPPA`` and the accuracy clearly over e. Nodes of one class tell nothing.
    """
    counts = Learning.of(torch.from_numpy(predicted), torch.from_numpy(y))
    if counts.classes < 2 or counts.learned:
        return True, counts.majority
    classes = 1 + int(max(predicted.max(), y.max()))
    shares = [np.bincount(each, minlength=classes) / len(y) for each in (predicted, y)]
    by_chance = float(shares[0] @ shares[1])
    over = counts.accuracy / 100 - by_chance
    # One-sided at 5 %, as the binomial test is.
    margin = normal_quantile(0.9) * math.sqrt(by_chance * (1 - by_chance) / len(y))
    return over > margin and over >= LEAST_KAPPA * (1 - by_chance), counts.majority
