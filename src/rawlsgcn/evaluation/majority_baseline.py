"""Whether a model has learned: is it better than always predicting the most frequent class?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import bdtrc, ndtri
from torch import Tensor

from .degree_bias import SMALLEST_GROUP

Ints = npt.NDArray[np.int64]
LEVEL = 0.05
"""An accuracy that a useless model reaches this often is not clearly above chance."""
SUBSET_LEVEL = 0.01
"""The same on a subset of the nodes, of which there are several."""
LEAST_KAPPA = 0.1
"""The least agreement with the labels of a model that is not right more often than a constant."""


@dataclass(frozen=True)
class Learning:
    """Counts of a model's predictions against the labels.

    Attributes:
        nodes: Labeled nodes.
        right: Those of them that are predicted correctly.
        classes: Classes among their labels.
        most_frequent: Nodes of the most frequent class.
    """

    nodes: int
    right: int
    classes: int
    most_frequent: int

    @classmethod
    def of(cls, predicted: Tensor | Ints, labels: Tensor | Ints) -> Learning:
        """Count predicted classes against labels.

        Args:
            predicted: Predicted classes, (nodes,).
            labels: Classes, (nodes,); a negative one is no label.

        Returns:
            The counts.
        """
        predicted, labels = torch.as_tensor(predicted).cpu(), torch.as_tensor(labels).cpu()
        labeled = labels >= 0
        counts = torch.unique(labels[labeled], return_counts=True)[1]
        right = int((predicted == labels)[labeled].sum())
        most = int(counts.max()) if len(counts) else 0
        return cls(int(labeled.sum()), right, len(counts), most)

    @classmethod
    def total(cls, runs: Sequence[Learning]) -> Learning:
        """Add up the counts of several ``runs`` on the same nodes."""
        nodes, right, most = (
            sum(getattr(run, name) for run in runs) for name in ("nodes", "right", "most_frequent")
        )
        return cls(nodes, right, runs[0].classes, most)

    @property
    def accuracy(self) -> float:
        """The accuracy, in per cent."""
        return 100 * self.right / max(1, self.nodes)

    @property
    def majority(self) -> float:
        """The accuracy, in per cent, of predicting the most frequent class for every node."""
        return 100 * self.most_frequent / max(1, self.nodes)

    @property
    def learned(self) -> bool:
        """Whether the accuracy is clearly above the share of the most frequent class.

        Clearly: a one-sided binomial test rejects that share at the level of 5 %, which it never
        does for a constant prediction. A model without a wrong prediction has learned, however few
        the nodes.
        """
        return self.right == self.nodes or self.p < LEVEL

    @property
    def p(self) -> float:
        """The p-value of that test: P(X >= right), X ~ Binomial(nodes, share)."""
        return float(bdtrc(self.right - 1, self.nodes, self.most_frequent / self.nodes))

    def sentence(self, name: str, cure: str) -> str:
        """Describe a model that has not learned, and what to try.

        Args:
            name: The model's name.
            cure: What to try.

        Returns:
            A sentence.
        """
        kinds = "class" if self.classes == 1 else "classes"
        return (
            f"{name} has not learned: training accuracy {self.accuracy:.0f} % on "
            f"{self.classes} {kinds}, where predicting the most frequent class gives "
            f"{self.majority:.0f} %; try {cure}."
        )


def has_learned(predicted: Tensor, labels: Tensor) -> bool:
    """Test whether a model has learned, by the classes that it predicts for its training nodes.

    Args:
        predicted: Predicted classes, (training nodes,).
        labels: Classes, (training nodes,).

    Returns:
        Whether it has: see :attr:`Learning.learned`.
    """
    return Learning.of(predicted, labels).learned


def better_than_constant(
    predicted: Ints, y: Ints, subsets: Sequence[npt.NDArray[np.bool_]] = ()
) -> tuple[bool, float]:
    """Test whether a model is clearly better than a constant answer on nodes it has not seen.

    Better is what is right clearly more often (:attr:`Learning.learned`). Two kinds of useful
    models may not be, and count as better nevertheless:

    - where classes are very uneven, one whose answers agree with the labels, by Cohen's kappa with
      p_c and q_c the shares of class c in both,

          κ = (accuracy - e) / (1 - e),   e = Σ_c p_c q_c,

      at least ``LEAST_KAPPA`` and the accuracy clearly over e;
    - one that is right clearly more often, at the level ``SUBSET_LEVEL``, on one of the
      ``subsets`` (masks): an audit is for models that are good on high degrees and fail low ones.

    If all nodes are of one class, any model counts as better. Also returns the per cent of the
    nodes of the most frequent class.
    """
    counts = Learning.of(predicted, y)
    if counts.classes < 2 or counts.learned:
        return True, counts.majority
    for subset in subsets:
        part = Learning.of(predicted[subset], y[subset])
        if part.nodes >= SMALLEST_GROUP and part.classes > 1 and part.p < SUBSET_LEVEL:
            return True, counts.majority
    # Cohen's kappa must be large enough, and clearly over 0, one-sided at 5 %.
    classes = 1 + int(max(predicted.max(), y.max()))
    shares = [np.bincount(each, minlength=classes) / len(y) for each in (predicted, y)]
    by_chance = float(shares[0] @ shares[1])
    over = counts.accuracy / 100 - by_chance
    margin = float(ndtri(1 - LEVEL)) * math.sqrt(by_chance * (1 - by_chance) / len(y))
    return over > margin and over >= LEAST_KAPPA * (1 - by_chance), counts.majority
