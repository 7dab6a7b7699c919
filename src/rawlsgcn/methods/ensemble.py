"""An ensemble: the weighted mean of the probabilities of trained runs, of any of the methods.

:func:`rawlsgcn.auto` makes it. It is a method so that it is saved, loaded and used to predict like
any other; what it consists of is one of its settings.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._core.errors import RawlsError
from .base import Learner, Method, Stackable
from .inputs import Inputs
from .registry import find_method
from .settings import Settings


@dataclass(frozen=True)
class EnsembleRun:
    """One run of an ensemble; the weights of all runs in the mean sum to one."""

    method: str
    settings: Settings
    weight: float


@dataclass(frozen=True)
class EnsembleSettings(Settings):
    """What an ensemble consists of.

    Args:
        runs: The runs as JSON text.
        temperature: What the logits are divided by.
    """

    runs: str = "[]"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(0 < self.temperature < math.inf, "temperature", "a positive number")
        self.parsed  # noqa: B018  raises an error for a text that describes no runs

    @classmethod
    def of(cls, runs: Iterable[EnsembleRun], temperature: float = 1.0) -> EnsembleSettings:
        """Describe an ensemble of these runs."""
        each = []
        for run in runs:
            defaults = asdict(find_method(run.method).defaults)
            settings = asdict(run.settings).items()
            changes = {name: value for name, value in settings if value != defaults[name]}
            each.append({"method": run.method, "settings": changes, "weight": run.weight})
        return cls(runs=json.dumps(each), temperature=temperature)

    @cached_property
    def parsed(self) -> tuple[EnsembleRun, ...]:
        """The runs; an error is raised where the text does not describe runs of known methods."""
        runs = []
        try:
            for one in json.loads(self.runs):
                method, changes = find_method(str(one["method"])), one["settings"]
                # An ensemble in an ensemble would never end.
                if not (isinstance(method, Stackable) and isinstance(changes, Mapping)):
                    raise TypeError
                settings = method.configure(changes)
                runs.append(EnsembleRun(method.name, settings, float(one["weight"])))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise RawlsError("runs must be a list of runs in JSON, as auto writes it") from error
        if not all(run.weight >= 0 and math.isfinite(run.weight) for run in runs):
            raise RawlsError("runs must have weights of zero or more")
        return tuple(runs)

    def described(self) -> dict[str, Any]:
        """Describe the ensemble for tables.

        ``runs`` is as in ``"12 of smoothed-mlp, 6 of gcn"``, and a setting has the different
        values of the runs, separated by commas.
        """
        methods = Counter(run.method for run in self.parsed)
        described = {"runs": ", ".join(f"{count} of {name}" for name, count in methods.items())}
        for name in dict.fromkeys(key for run in self.parsed for key in asdict(run.settings)):
            values = dict.fromkeys(getattr(run.settings, name, None) for run in self.parsed)
            described[name] = ", ".join(_text(value) for value in values if value is not None)
        return described | {"temperature": f"{self.temperature:.3g}"}


def _text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


class Ensemble(Method):
    """The mean of the runs that :func:`rawlsgcn.auto` has chosen."""

    name = "auto"
    title = "Auto"
    defaults: ClassVar[Settings] = EnsembleSettings()

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        raise RawlsError("auto is not trained as a method: use rawlsgcn auto, or rg.auto(graph)")

    def restore(self, inputs: Inputs, settings: Settings, state: dict[str, Tensor]) -> Learner:
        """Make a learner of saved runs, which predicts and cannot be trained."""
        assert isinstance(settings, EnsembleSettings)
        return EnsembleLearner(inputs, settings, state)


class EnsembleLearner(Learner):
    """The runs with their weights, for predictions only."""

    def __init__(
        self, inputs: Inputs, settings: EnsembleSettings, state: Mapping[str, Tensor]
    ) -> None:
        self.inputs, self.settings = inputs, settings
        if not settings.parsed:
            raise RawlsError("its settings describe no runs: they were changed; train again")
        self.runs = [
            find_method(run.method).restore(inputs, run.settings, state_of_run(state, number))
            for number, run in enumerate(settings.parsed)
        ]
        self.module = nn.ModuleList(run.module for run in self.runs)

    def epoch(self) -> float:
        raise RawlsError("an ensemble of trained runs is not trained further")

    @torch.no_grad()
    def probabilities(self) -> Tensor:
        """The weighted mean of the runs' probabilities in float64, before the temperature."""
        i = self.inputs
        mean = torch.zeros(i.num_nodes, i.num_classes, dtype=torch.float64, device=i.device)
        for run, learner in zip(self.settings.parsed, self.runs, strict=True):
            mean += run.weight * torch.softmax(learner.logits().double(), -1)
        return mean

    def logits(self) -> Tensor:
        return scores_of(self.probabilities(), self.settings.temperature).to(self.inputs.dtype)


def scores_of(probabilities: Tensor, temperature: float = 1.0) -> Tensor:
    """Finite logits whose softmax at temperature 1 is the given probabilities."""
    return probabilities.clamp_min(1e-30).log() / temperature


def state_of_run(state: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    """The state of one run by its own names, from that of its ensemble."""
    prefix, size = f"{number}.", len(f"{number}.")
    return {name[size:]: tensor for name, tensor in state.items() if name.startswith(prefix)}


def joined_states(states: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state of an ensemble: before each name the number of its run and a point."""
    return {
        f"{number}.{name}": tensor
        for number, state in enumerate(states)
        for name, tensor in state.items()
    }
