"""The runs of a method: their metrics, and which of them diverged or have not learned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .._core.errors import RawlsError
from ..evaluation.calibration import UNDER_CONFIDENT, CalibrationOutcome
from ..evaluation.degree_bias import node_scores
from ..evaluation.majority_baseline import Learning
from ..evaluation.run_metrics import RunMetrics, degree_frame, worst_off
from ..methods.registry import SAVED_ONLY

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Spread:
    """A metric over the runs.

    Attributes:
        mean: The mean.
        std: The population standard deviation.
        runs: The value of each run.
    """

    mean: float
    std: float
    runs: list[float]

    @classmethod
    def of(cls, runs: list[float]) -> Spread:
        """Compute mean and standard deviation of the values of the runs."""
        return cls(float(np.mean(runs)), float(np.std(runs)), [float(run) for run in runs])


@dataclass
class TrainedRuns:
    """What a :class:`~rawlsgcn.Result`, which describes the fields, has beside its outputs."""

    dataset: str
    method: str
    title: str
    settings: dict[str, Any]
    seeds: list[int]
    device: str
    parameters: int
    seconds: dict[str, float]
    peak_memory_mb: float
    run_metrics: list[RunMetrics]
    graph: Data = field(repr=False)
    degree: Tensor = field(repr=False)
    mask: Tensor = field(repr=False)
    logits: Tensor = field(repr=False)
    states: list[dict[str, Tensor]] = field(repr=False)
    synthetic: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def class_names(self) -> list[str] | None:
        """The names of the classes in their order; None where they are numbers."""
        names = self.graph.get("class_names")
        # A class that no node has may be the last of them.
        return None if names is None else list(names)[: int(self.logits.shape[-1])]

    def spread(self, name: str) -> Spread:
        """Return a metric over the runs.

        Args:
            name: Its name, such as ``"validation_accuracy"`` or ``"loss_slope"``.

        Returns:
            Mean, standard deviation and the value of each run.
        """
        if name in ("validation_accuracy", "training_accuracy"):
            found: Spread = getattr(self, name)
            return found
        return Spread.of([getattr(each, name) for each in self.run_metrics])

    @property
    def normalization(self) -> str:
        """The name of the normalization of the adjacency matrix."""
        return str(self.settings["normalization"])

    @property
    def described_settings(self) -> dict[str, Any]:
        """The settings by name, as tables show them."""
        return self.settings

    @property
    def naming_settings(self) -> dict[str, Any]:
        """The settings by which results of the same title may be called."""
        return self.settings

    @property
    def accuracy(self) -> Spread:
        """The accuracy on the evaluated nodes, in per cent."""
        return self.spread("accuracy")

    @property
    def bias(self) -> Spread:
        """The variance over degrees of the average cross entropy."""
        return self.spread("bias")

    @property
    def calibrated_bias(self) -> Spread:
        """The bias after temperature scaling on the validation nodes."""
        return self.spread("calibrated_bias")

    @property
    def low_degree_accuracy(self) -> Spread:
        """The accuracy of the quarter with the lowest degrees, in per cent."""
        return self.spread("low_degree_accuracy")

    @property
    def high_degree_accuracy(self) -> Spread:
        """The accuracy of the quarter with the highest degrees, in per cent."""
        return self.spread("high_degree_accuracy")

    @property
    def validation_accuracy(self) -> Spread:
        """The accuracy on the validation nodes, in per cent, by which settings are chosen."""
        nodes = self.graph.val_mask & (self.graph.y >= 0)
        right = [node_scores(each[nodes], self.graph.y[nodes])[1] for each in self.logits]
        return Spread.of([100 * float(each.mean()) for each in right])

    @property
    def training_accuracy(self) -> Spread:
        """The accuracy on the training nodes, in per cent."""
        each = zip(self.seeds, self._learning, strict=True)
        return Spread.of(
            [math.nan if seed in self.diverged else one.accuracy for seed, one in each]
        )

    @cached_property
    def _learning(self) -> list[Learning]:
        nodes = self.graph.train_mask & (self.graph.y >= 0)
        return [Learning.of(each[nodes].argmax(-1), self.graph.y[nodes]) for each in self.logits]

    @cached_property
    def diverged(self) -> list[int]:
        """The seeds of the runs that diverged: a weight or an output is not a finite number."""
        runs = zip(self.seeds, self.logits, strict=True)
        return [seed for seed, logits in runs if not bool(logits.isfinite().all())]

    @cached_property
    def not_learned(self) -> list[int]:
        """The seeds of the runs no better than the majority class on their training nodes."""
        runs = zip(self.seeds, self._learning, strict=True)
        return [seed for seed, one in runs if seed not in self.diverged and not one.learned]

    @property
    def failed(self) -> str:
        """``"diverged"``, ``"has not learned"``, or nothing if there is no :attr:`failure`."""
        if self.failure is None:
            return ""
        return "diverged" if self.diverged else "has not learned"

    @cached_property
    def failure(self) -> str | None:
        """Why nothing may be concluded from these runs, in a sentence, or None.

        A run diverged, or half of the runs or more have not learned.
        """
        return self.failure_of(self.title)

    def failure_of(self, name: str) -> str | None:
        """Return :attr:`failure` with another name of the method.

        Args:
            name: The name.

        Returns:
            The sentence, or None.
        """
        if self.diverged:
            seeds = f"seed{'s' * (len(self.diverged) > 1)} {', '.join(map(str, self.diverged))}"
            return (
                f"{name}: training diverged ({seeds}), so that there are no "
                "metrics of it and no means over the runs; use a lower learning rate (lr)."
            )
        if 2 * len(self.not_learned) < len(self.seeds):
            return None
        cure = "another learning rate (lr), more epochs or a lower weight_decay"
        if self.method in SAVED_ONLY:  # a search has tried these already
            cure = "other node features, more training nodes or edges between similar nodes"
        return Learning.total(self._learning).sentence(name, cure)

    @property
    def caution(self) -> str | None:
        """A warning if the bias is low because the model is under-confident, or None."""
        temperatures = [
            run.temperature
            for run in self.run_metrics
            if run.calibration is CalibrationOutcome.FOUND
        ]
        mean = float(np.mean(temperatures)) if temperatures else math.nan
        if not mean < UNDER_CONFIDENT:
            return None
        return (
            f"the model is under-confident (temperature {mean:.2f}), and such a model has less "
            "bias without serving anybody better: read the calibrated bias and the low-degree "
            "accuracy too."
        )

    @cached_property
    def by_degree(self) -> pd.DataFrame:
        """Count, loss and accuracy of each degree, over all runs, with 95 % bootstrap intervals."""
        return degree_frame(self.logits, self.graph.y, self.degree, self.mask)

    def worst_off(self, groups: int = 3) -> pd.DataFrame:
        """Return the degrees with the lowest accuracy, of those with ten nodes or more.

        Args:
            groups: How many degrees at most.

        Returns:
            Their rows of :attr:`by_degree`, the lowest accuracy first.
        """
        return worst_off(self.by_degree, groups)

    @property
    def best_run(self) -> int:
        """The index of the run with the highest validation accuracy; never one that diverged.

        Raises:
            RawlsError: Every run diverged.
        """
        runs = self.validation_accuracy.runs
        sound = [run for run, seed in enumerate(self.seeds) if seed not in self.diverged]
        if not sound:
            raise RawlsError(
                f"every run of {self.title} diverged, so there is none to choose: "
                f"use a lower learning rate (lr) than {self.settings['lr']:g}"
            )
        # Without validation nodes all are NaN, and the first run is as good as any.
        return max(sound, key=lambda run: -1 if math.isnan(runs[run]) else runs[run])
