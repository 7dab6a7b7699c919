"""Whether a model has learned: is it better than always predicting the most frequent class?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .audit.intervals import SMALLEST, normal_quantile

Ints = npt.NDArray[np.int64]
LEVEL = 0.05
"""An accuracy that a useless model reaches this often is not clearly above chance."""
LEAST_KAPPA = 0.1
"""The least agreement with the labels of a model that is not right more often than a constant."""
SUBSET_LEVEL = 0.01


@dataclass(frozen=True)
class Learning:
    """A model's predictions on its training nodes, counted.

    Attributes:
        nodes: Labelled training nodes.
        right: Those of them that are predicted rightly.
        classes: Classes among their labels.
        most_frequent: Nodes of the most frequent class.
    """

    nodes: int
    right: int
    classes: int
    most_frequent: int

    @classmethod
    def of(cls, predicted: Tensor, labels: Tensor) -> Learning:
        """Count predicted classes against labels; a node whose label is negative has none."""
        predicted, labels = torch.as_tensor(predicted).cpu(), torch.as_tensor(labels).cpu()
        labelled = labels >= 0
        counts = torch.unique(labels[labelled], return_counts=True)[1]
        right = int((predicted == labels)[labelled].sum())
        most = int(counts.max()) if len(counts) else 0
        return cls(int(labelled.sum()), right, len(counts), most)

    @classmethod
    def total(cls, runs: Sequence[Learning]) -> Learning:
        """The counts of several runs on the same nodes, added up."""
        nodes, right, most = (
            sum(getattr(run, name) for run in runs) for name in ("nodes", "right", "most_frequent")
        )
        return cls(nodes, right, runs[0].classes, most)

    @property
    def accuracy(self) -> float:
        """The training accuracy, in percent."""
        return 100 * self.right / max(1, self.nodes)

    @property
    def majority(self) -> float:
        """The accuracy, in percent, of predicting the most frequent class for every node."""
        return 100 * self.most_frequent / max(1, self.nodes)

    @property
    def learned(self) -> bool:
        """Whether the training accuracy is clearly above the share of the most frequent class.

        Clearly: a one-sided binomial test rejects that share at the level of 5 %. A constant
        prediction never passes. A model without a wrong prediction has learned all there is,
        however few the nodes, and without training nodes nothing can be held against it.
        """
        if self.right == self.nodes:
            return True
        from scipy.special import bdtrc

        chance = self.most_frequent / self.nodes
        return bool(bdtrc(self.right - 1, self.nodes, chance) < LEVEL)

    def sentence(self, name: str) -> str:
        """What to say of a model called ``name`` that has not learned."""
        kinds = "class" if self.classes == 1 else "classes"
        return (
            f"{name} has not learned: training accuracy {self.accuracy:.0f} % on "
            f"{self.classes} {kinds}, where predicting the most frequent class gives "
            f"{self.majority:.0f} %; try another learning rate (lr), more epochs or a lower "
            "weight_decay."
        )


def has_learned(predicted: Tensor, labels: Tensor) -> bool:
    """Whether a model has learned, by the classes that it predicts for its training nodes.

    ``predicted`` and ``labels`` are of the shape (training nodes,). See :attr:`Learning.learned`
    for the test, and :meth:`Learning.sentence` for what to say where it has not.
    """
    return Learning.of(predicted, labels).learned


def better_than_constant(
    predicted: Ints, y: Ints, subsets: Sequence[npt.NDArray[np.bool_]] = ()
) -> tuple[bool, float]:
    """Whether ``predicted`` is clearly better than a constant answer, and what that reaches.

    The second is the per cent of the nodes of the most frequent class. Better is what is
    right clearly more often (:attr:`Learning.learned`). Two kinds of
    useful models may not be, and count as better all the same:

    - where classes are very uneven, one whose answers go with the labels, by Cohen's kappa with p_c
      and q_c the shares of class c in both,

          κ = (accuracy - e) / (1 - e),   e = Σ_c p_c q_c,

      at least ``LEAST_KAPPA`` and the accuracy clearly over e;
    - one that is right clearly more often, at the level ``SUBSET_LEVEL``, on the nodes of one of
      the ``subsets``: an audit is for models that serve high degrees and fail low ones.

    Nodes of one class tell nothing.
    """
    counts = Learning.of(torch.from_numpy(predicted), torch.from_numpy(y))
    better = counts.classes < 2 or counts.learned or _agrees(predicted, y, counts)
    better = better or any(_better(predicted[subset], y[subset]) for subset in subsets)
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
    return bool(bdtrc(counts.right - 1, counts.nodes, chance) < SUBSET_LEVEL)
