"""Whether a model has learned: is it better on its own training nodes than the majority class?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: A training accuracy that a model of no use reaches this often is not clearly above chance.
LEVEL = 0.05


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
