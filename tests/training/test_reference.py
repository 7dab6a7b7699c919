"""Early stopping: the best weights on validation are the ones that are kept."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rawlsgcn.methods import Inputs, Learner, Method, Settings
from rawlsgcn.training import Job
from rawlsgcn.training.reference import train_reference


class Scripted(Learner):
    """A learner whose only weight is its epoch and whose scores are written down beforehand."""

    def __init__(self, inputs: Inputs, scores: list[float]) -> None:
        self.inputs, self.scores = inputs, scores
        self.module = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.module.weight)

    def epoch(self) -> float:
        with torch.no_grad():
            self.module.weight += 1
        return 0.0

    def logits(self) -> Tensor:
        return torch.zeros(1, 1)

    def validation_score(self) -> float:
        return self.scores[int(self.module.weight) - 1]


def trained(scores: list[float], patience: int) -> tuple[int, list[int]]:
    """The epoch whose weights were kept, and the progress that was told."""

    class ScriptedMethod(Method):
        name, title, defaults = "scripted", "Scripted", Settings()

        def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
            return Scripted(inputs, scores)

    told: list[int] = []
    inputs = Inputs(*(torch.zeros(1, 1) for _ in range(3)), None, *[torch.zeros(0)] * 3, 1)
    job = Job(Settings(epochs=len(scores), patience=patience), 0)
    (learner,) = train_reference(
        ScriptedMethod(), inputs, [job], lambda done, total: told.append(done)
    )
    return int(learner.module.weight), told


def test_without_patience_the_last_weights_are_kept() -> None:
    assert trained([5.0, 1.0, 2.0], patience=0)[0] == 3


def test_the_best_weights_are_restored() -> None:
    assert trained([1.0, 5.0, 2.0, 3.0], patience=10)[0] == 2


def test_training_stops_when_patience_has_run_out() -> None:
    epoch, told = trained([1.0, 5.0, 2.0, 5.0, 9.0, 9.0], patience=2)
    assert epoch == 2
    assert told == [1, 2, 3, 4, 6]
