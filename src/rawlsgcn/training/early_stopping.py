"""Early stopping of training on the whole graph, and the best weights by validation."""

from __future__ import annotations

import copy
import math

from torch import Tensor

from ..methods import Learner
from ..methods.base import all_finite


class EarlyStopping:
    """The best weights on validation, and the number of epochs since.

    Weights or scores that are not finite numbers are never the best. With a ``patience`` of 0
    nothing is watched and nothing is restored.
    """

    def __init__(self, learner: Learner, patience: int) -> None:
        self.learner, self.patience = learner, patience
        self.score, self.since = -math.inf, 0
        self.state: dict[str, Tensor] | None = None

    def should_stop(self) -> bool:
        """Compute the learner's score after an epoch; True when patience has run out."""
        if self.patience == 0:
            return False
        score = self.learner.validation_score()
        if score > self.score and all_finite(self.learner.module.state_dict().values()):
            self.score, self.since = score, 0
            self.state = copy.deepcopy(self.learner.module.state_dict())
        else:
            self.since += 1
        return self.since >= self.patience

    def restore_best(self) -> None:
        """Give the learner the weights with the best score."""
        if self.state is not None:
            self.learner.module.load_state_dict(self.state)
