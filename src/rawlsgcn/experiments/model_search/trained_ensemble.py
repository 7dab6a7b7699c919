"""Trained runs as one model: their weighted mean, scaled by a temperature on validation nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from ...evaluation.calibration import CalibrationOutcome, temperature
from ...methods import Inputs
from ...methods.ensemble import (
    EnsembleLearner,
    EnsembleRun,
    EnsembleSettings,
    joined_states,
    scores_of,
)
from .judge import Judge


@dataclass(frozen=True)
class TrainedEnsemble:
    """An ensemble with its weights and its predictions.

    Attributes:
        settings: Its runs and its temperature.
        state: The weights of all runs.
        logits: The scores of each node, (nodes, classes), as the saved model computes them.
    """

    settings: EnsembleSettings
    state: dict[str, Tensor]
    logits: Tensor

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        judge: Judge,
        runs: Sequence[EnsembleRun],
        states: Sequence[Mapping[str, Tensor]],
    ) -> TrainedEnsemble:
        """Make a model of trained runs.

        Args:
            inputs: The graph.
            judge: The validation nodes, on which the temperature is found.
            runs: The runs.
            states: Their weights.

        Returns:
            The model.
        """
        settings = EnsembleSettings.of(runs)
        state = joined_states(states)
        mean = EnsembleLearner(inputs, settings, state).probabilities()
        found = temperature(scores_of(mean)[judge.nodes.to(mean.device)].cpu(), judge.y)
        if found.outcome is CalibrationOutcome.FOUND:
            settings = replace(settings, temperature=found.value)
        logits = scores_of(mean, settings.temperature).to(inputs.dtype)
        return cls(settings, state, logits.cpu())
