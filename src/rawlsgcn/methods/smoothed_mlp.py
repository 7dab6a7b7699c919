"""Smoothed MLP: an MLP on features that personalized PageRank has smoothed beforehand.

With F the features, P a symmetric normalization of A + I and Π the smoothing of
:mod:`rawlsgcn.methods._ops.smoothing`, the network is an MLP on the rows of Π F, of the pair
[F, Π F], or of the pair [A, F]. As in APPNP and SIGN (Gasteiger et al., 2019; Frasca et al., 2020)
a node receives features from ten steps away. The graph is needed only before training, which then
costs what an MLP on the labeled rows costs. Two things serve nodes of low degree: P = Â_DS, in
which they weigh as much as any other node, and the lifted graph, in which nodes with few neighbors
are joined to the nodes with the nearest features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from torch import Tensor

from .base import Learner, Stackable, take_step, training_loss
from .gcn import BackboneLearner
from .inputs import Inputs
from .settings import RENORMALIZED, Settings
from .smoothed_mlp_inputs import SmoothedMLPSettings, SmoothedStack


class SmoothedMLP(Stackable):
    """An MLP on smoothed features; 200 epochs at the rate 0.01."""

    name = "smoothed-mlp"
    title = "Smoothed MLP"
    defaults: ClassVar[Settings] = SmoothedMLPSettings(lr=0.01, epochs=200, weight_decay=5e-5)
    normalizations: ClassVar[tuple[str, ...]] = ("doubly-stochastic", RENORMALIZED)
    grid: ClassVar[Mapping[str, Sequence[float]]] = {
        "lr": (0.05, 0.01, 0.005),
        "weight_decay": (5e-4, 5e-5, 0.0),
    }

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        return SmoothedMLPLearner(self.stack(inputs, settings), settings, seed)

    def stack(self, inputs: Inputs, settings: Settings) -> SmoothedStack:
        return SmoothedStack(inputs, _own(settings))

    def label_smoothing(self, settings: Settings) -> float:
        return _own(settings).label_smoothing

    def restore(self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]) -> Learner:
        """Make a learner with saved weights; tf-idf is that of the graph it was trained on."""
        fixed = {name: tensor for name, tensor in state.items() if not name.startswith("layers.")}
        stack = SmoothedStack(inputs, _own(settings), fixed)
        learner = SmoothedMLPLearner(stack, settings, seed=0)
        learner.module.load_state_dict(state)
        return learner


def _own(settings: Settings) -> SmoothedMLPSettings:
    assert isinstance(settings, SmoothedMLPSettings)
    return settings


class SmoothedMLPLearner(BackboneLearner):
    """An MLP on the labeled rows, one batch an epoch."""

    def __init__(self, stack: SmoothedStack, settings: Settings, seed: int) -> None:
        super().__init__(stack.inputs, settings, seed, stack.sizes)
        self.stack = stack
        for name, tensor in stack.fixed.items():
            self.module.register_buffer(name, tensor)

    def epoch(self) -> float:
        self.module.train()
        logits = self.module(self.stack.rows, None)
        smoothing = self.stack.settings.label_smoothing
        return take_step(self.optimizer, training_loss(logits, self.inputs, smoothing))

    def logits(self) -> Tensor:
        return self.stack.logits([parameter.detach() for parameter in self.module.parameters()])
