"""Whether a model says anything about the judged nodes that a constant answer would not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from ..learning import Learning
from .intervals import SMALLEST, normal_quantile

Ints = npt.NDArray[np.int64]
LEAST_KAPPA = 0.1
"""The least agreement with the labels of a model that is not right more often than a constant."""
PART_LEVEL = 0.01


def has_learned(
    predicted: Ints, y: Ints, parts: Sequence[npt.NDArray[np.bool_]] = ()
) -> tuple[bool, float]:
    """Whether ``predicted`` is clearly better than a constant answer, and what that reaches.

    The second is the per cent of the nodes that are of the most frequent class. Better is what is
    right clearly more often (:attr:`~rawlsgcn.evaluation.learning.Learning.learned`). Two kinds of
    useful models may not be, and count as better all the same:

    - where classes are very uneven, one whose answers go with the labels, by Cohen's kappa with p_c
      and q_c the shares of class c in both,

          κ = (accuracy - e) / (1 - e),   e = Σ_c p_c q_c,

      at least ``LEAST_KAPPA`` and the accuracy clearly over e;
    - one that is right clearly more often, at the level ``PART_LEVEL``, on the nodes of one of the
      ``parts``: who serves high degrees and fails low ones is what an audit is held for.

    Nodes of one class tell nothing.
    """
    counts = Learning.of(torch.from_numpy(predicted), torch.from_numpy(y))
    better = counts.classes < 2 or counts.learned or _agrees(predicted, y, counts)
    better = better or any(_better(predicted[part], y[part]) for part in parts)
    return better, counts.majority


def _agrees(predicted: Ints, y: Ints, counts: Learning) -> bool:
    classes = 1 + int(max(predicted.max(), y.max()))
    shares = [np.bincount(each, minlength=classes) / len(y) for each in (predicted, y)]
    by_chance = float(shares[0] @ shares[1])
    over = counts.accuracy / 100 - by_chance
    # One-sided at 5 %, as the binomial test is.
    margin = normal_quantile(0.9) * math.sqrt(by_chance * (1 - by_chance) / len(y))
    return over > margin and over >= LEAST_KAPPA * (1 - by_chance)


def _better(predicted: Ints, y: Ints) -> bool:
    from scipy.special import bdtrc

    counts = Learning.of(torch.from_numpy(predicted), torch.from_numpy(y))
    if counts.nodes < SMALLEST or counts.classes < 2:
        return False
    chance = counts.most_frequent / counts.nodes
    return bool(bdtrc(counts.right - 1, counts.nodes, chance) < PART_LEVEL)
