"""The result of training a method: its runs with their metrics, which prints, saves and audits."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._core.atomic_files import atomic_file
from .._core.atomic_folders import atomic_directory
from .._core.errors import RawlsError
from ..evaluation.calibration import UNDER_CONFIDENT, CalibrationOutcome
from ..evaluation.degree_bias import node_scores
from ..evaluation.majority_baseline import Learning
from ..evaluation.run_metrics import RunMetrics, degree_frame, worst_off
from ..graphs.feature_storage import has_negative_features
from ..graphs.notes import GraphFacts
from ..graphs.splits import MASKS
from .result_tables import plain_values, runs_frame
from .training_graph import TrainingGraph, split_words

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from .audit_result import Audit


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


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


@dataclass
class Result:
    """One method trained on one graph with one or several seeds.

    Metrics are computed on the evaluated nodes. The metrics of a run that diverged are NaN, and so
    is each mean over runs that include it.

    Attributes:
        dataset: The name of the graph.
        method: The name of the method.
        title: Its title in tables and figures.
        settings: Its settings by name.
        seeds: The seed of each run.
        device: The device of the training, ``"cpu"`` or ``"cuda"``.
        parameters: The number of trained parameters of one run.
        seconds: The seconds of all runs together, by phase.
        peak_memory_mb: The peak memory of the tensors on a GPU, or of the process on the CPU; NaN
            if other methods or settings were trained in the same process before.
        run_metrics: The metrics of each run.
        graph: The graph with its masks.
        degree: The degree of each node, (nodes,).
        mask: The evaluated nodes, (nodes,): the graph's test nodes.
        logits: The scores of each run, (runs, nodes, classes), on the CPU.
        states: The weights of each run.
        synthetic: Whether the graph is synthetic.
        notes: Sentences for the user.

    Example:
        >>> import rawlsgcn as rg
        >>> result = rg.fit(rg.synthetic(300), "gcn", seeds=2, epochs=20)
        >>> result.seeds, len(result.to_frame())
        ([0, 1], 2)
    """

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
        """Return a metric of :attr:`run_metrics` over the runs.

        Args:
            name: Its name, such as ``"temperature"`` or ``"loss_slope"``.

        Returns:
            Mean, standard deviation and the value of each run.
        """
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
        sound = [seed not in self.diverged for seed in self.seeds]
        each = zip(self._learning, sound, strict=True)
        return Spread.of([one.accuracy if finite else math.nan for one, finite in each])

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
            return (
                f"{name}: training diverged ({_seeds(self.diverged)}), so that there are no "
                "metrics of it and no means over the runs; use a lower learning rate (lr)."
            )
        if 2 * len(self.not_learned) < len(self.seeds):
            return None
        return Learning.total(self._learning).sentence(name)

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

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics of each run, on the evaluated nodes unless their name says otherwise.

        Returns:
            One row for each seed: ``seed``, ``accuracy``, ``low_degree_accuracy``,
            ``high_degree_accuracy``, ``validation_accuracy``, ``training_accuracy`` (in per cent),
            ``bias``, ``calibrated_bias``, ``temperature``, ``diverged`` and ``learned``.
        """
        return runs_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and settings in the form that ``--json`` writes.

        Returns:
            Plain values by name; a number that is not defined is None.
        """
        return plain_values(self)

    def save(self, folder: str | Path) -> None:
        """Save the model: weights of every run, configuration and metrics.

        :func:`rawlsgcn.load_model` reads it.

        Args:
            folder: The folder, which is replaced as a whole.

        Raises:
            RawlsError: If every run diverged.
        """
        with atomic_directory(folder) as temporary:
            self.write_model(temporary)

    def write_model(self, folder: Path) -> None:
        """Write the model into an existing folder, beside other files.

        Args:
            folder: The folder.
        """
        from .saved_models import write_model

        # Decided once, on the training graph: another graph's features must be treated alike.
        divided = self.settings["normalize_features"] and not has_negative_features(self.graph.x)
        write_model(
            folder,
            dict(zip(self.seeds, self.states, strict=True)),
            self.to_dict(),
            method=self.method,
            settings=self.settings,
            row_normalized=bool(divided),
            num_features=int(self.graph.x.shape[1]),
            num_classes=int(self.logits.shape[-1]),
            best_seed=self.seeds[self.best_run],
            dataset=self.dataset,
            class_names=self.class_names,
            structural_features=GraphFacts.of(self.graph).structural_features,
            graph=TrainingGraph.of(self.graph),
        )

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict` to a file.

        Args:
            path: The JSON file, which is written completely or not at all.

        Raises:
            RawlsError: The file cannot be written.
        """
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")

    def probabilities(self, run: int | None = None) -> Tensor:
        """Return the class probabilities of each node.

        Args:
            run: The index of the run; by default :attr:`best_run`.

        Returns:
            The probabilities, (nodes, classes).

        Raises:
            RawlsError: There is no such run, or it diverged.
        """
        return torch.softmax(self._logits_of(run), -1)

    def _logits_of(self, run: int | None) -> Tensor:
        if run is None:
            return self.logits[self.best_run]
        if run not in range(len(self.seeds)):
            raise RawlsError(
                f"there is no run {run!r}: runs are counted from 0 to {len(self.seeds) - 1}"
            )
        if self.seeds[run] in self.diverged:
            raise RawlsError(f"run {run} diverged, so it predicts nothing: ask for another run")
        return self.logits[run]

    def to_predictions(self, path: str | Path, run: int | None = None) -> None:
        """Write the class probabilities of each node, in float64, for ``rawlsgcn audit``.

        Classes have their names, and the column ``split`` says train, val or test.

        Args:
            path: The file: .csv, .tsv, .parquet or .npz.
            run: The index of the run; by default :attr:`best_run`.

        Raises:
            RawlsError: There is no such run, it diverged, or the file cannot be written.
        """
        from ..evaluation.prediction_writing import write_predictions

        exact = torch.softmax(self._logits_of(run).double(), -1)
        write_predictions(
            exact,
            self.graph.get("node_ids"),
            path,
            class_names=self.class_names,
            split=split_words([self.graph[key] for key in MASKS]),
        )

    def audit(self, **options: Any) -> Audit:
        """Audit the run with the highest validation accuracy.

        Args:
            **options: The options of :func:`rawlsgcn.audit`.

        Returns:
            The audit of that run; it keeps this result for the section on training of its page.

        Raises:
            RawlsError: Every run diverged, or an option is wrong.
        """
        from .auditing import audit

        return audit(self.graph, self, **options)

    def __str__(self) -> str:
        from ..reporting.text_tables import result_line

        return result_line(self)

    def __repr__(self) -> str:
        from ..reporting.text_tables import results_text

        return results_text([self])

    def _repr_html_(self) -> str | None:
        try:
            from ..reporting.notebook import results_html
        except ModuleNotFoundError:  # without the extra ``report``: the text is shown
            return None
        return results_html(self)
