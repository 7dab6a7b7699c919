"""The result of training a method, which prints, saves and audits its runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._core.atomic_files import atomic_file
from .._core.atomic_folders import atomic_directory
from .._core.errors import RawlsError
from .._core.serialization import jsonable
from ..graphs.node_features import has_negative_features
from ..graphs.notes import GraphFacts
from ..graphs.splits import MASKS
from .model_files import TrainingGraph, split_words, write_model
from .trained_runs import TrainedRuns

if TYPE_CHECKING:
    import pandas as pd

    from .auditing.audit_result import Audit


#: What ``--json`` has of a result: its attributes, and its metrics over the runs.
_FACTS = (
    *("dataset", "synthetic", "method", "normalization", "seeds", "device", "parameters"),
    *("diverged", "not_learned", "seconds", "peak_memory_mb", "settings", "caution", "notes"),
)
_METRICS = (
    *("accuracy", "bias", "validation_accuracy", "training_accuracy", "calibrated_bias"),
    *("low_degree_accuracy", "high_degree_accuracy", "loss_slope", "accuracy_slope", "temperature"),
)


class Result(TrainedRuns):
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

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics of each run, on the evaluated nodes unless their name says otherwise.

        Returns:
            One row for each seed: ``seed``, ``accuracy``, ``low_degree_accuracy``,
            ``high_degree_accuracy``, ``validation_accuracy``, ``training_accuracy`` (in per cent),
            ``bias``, ``calibrated_bias``, ``temperature``, ``diverged`` and ``learned``.
        """
        import pandas as pd

        measured = ["accuracy", "low_degree_accuracy", "high_degree_accuracy"]
        measured += ["validation_accuracy", "training_accuracy", "bias", "calibrated_bias"]
        frame = pd.DataFrame({"seed": self.seeds})
        for name in [*measured, "temperature"]:
            frame[name] = self.spread(name).runs
        frame["diverged"] = [seed in self.diverged for seed in self.seeds]
        frame["learned"] = [seed not in self.diverged + self.not_learned for seed in self.seeds]
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics and settings in the form that ``--json`` writes.

        Returns:
            Plain values by name; a number that is not defined is None.
        """

        values = {name: getattr(self, name) for name in _FACTS}
        values |= {name: self.settings[name] for name in ("lr", "epochs")}
        values |= {name: asdict(self.spread(name)) for name in _METRICS}
        return dict(jsonable(values))

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
        from .auditing.audit_predictions import audit

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
