"""The audit of models by degree: one object that prints, saves and displays itself."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._core.atomic_files import atomic_file
from ..._core.errors import needs_extra, unknown_name
from ..._core.serialization import jsonable
from ...evaluation.audit.findings import ModelAudit, ModelComparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Provenance:
    """How an audit was computed, for the reader and for whoever repeats it.

    ``graph_options`` are the options of the command line that name the graph and what its nodes are
    grouped by; ``predicted`` counts the labeled nodes outside training and validation that every
    model predicts.
    """

    version: str
    seed: int
    resamples: int
    level: float
    by: str
    bins: str
    bias_over: str
    evaluated: str
    graph_nodes: int
    graph_edges: int
    graph_features: bool
    nodes: int
    predicted: int
    smallest_group: int
    files: dict[str, str]
    graph_options: dict[str, str]
    command: str | None
    seconds: float


@dataclass(frozen=True)
class ShownPredictions:
    """The predictions of one model for the shown nodes, in the same order (None: none)."""

    name: str
    predicted: list[int | None]
    loss: list[float | None]


@dataclass(frozen=True)
class ShownNodes:
    """Single nodes for the explorer: all evaluated ones, or a sample of them (``of`` in all).

    ``classes`` are the names of the classes in their order, where they have any.
    """

    of: int
    id: list[int | str]
    value: list[float | str]
    degree: list[int]
    label: list[int]
    models: list[ShownPredictions]
    classes: list[str] | None = None

    def class_name(self, number: int) -> str:
        """The name of a class: its number where it has no other."""
        known = self.classes is not None and 0 <= number < len(self.classes)
        return self.classes[number] if known and self.classes else str(number)


@dataclass(frozen=True)
class Audit:
    """The audit of one or several models on one graph, by degree or another column of the nodes.

    Attributes:
        graph: The name of the graph.
        synthetic: Whether it is a synthetic graph.
        column: What the nodes are grouped by.
        ordered: Whether its values are numbers and not text.
        models: The figures of every model.
        comparisons: Comparisons of every pair of models that have learned.
        how: How the audit was computed.
        training_nodes_excluded: False where the graph has no masks, so that nodes that a model was
            trained on may be among the evaluated ones.
        nodes: Single nodes, unless ``shown=0``.
        notes: Sentences for the user.
        results: The trained :class:`Result` objects that were audited, by the models' names, also
            those of which every run diverged and which are not among the ``models``; empty for
            other predictions.
    """

    graph: str
    synthetic: bool
    column: str
    ordered: bool
    models: list[ModelAudit]
    comparisons: list[ModelComparison]
    how: Provenance
    training_nodes_excluded: bool
    nodes: ShownNodes | None = field(default=None, repr=False)
    notes: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def model(self, name: str) -> ModelAudit:
        """Return the figures of one model.

        Args:
            name: The model's name.

        Returns:
            Its figures.

        Raises:
            RawlsError: If there is no such model.
        """
        known = {model.name: model for model in self.models}
        if name not in known:
            raise unknown_name("model", name, known)
        return known[name]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``--json`` writes it.

        Returns:
            The verdict in words first, then the fields of the audit; NaN is None.
        """
        from ...reporting.audit_verdict import verdict

        contents = {"verdict": asdict(verdict(self)), **asdict(replace(self, results={}))}
        contents["results"] = {name: result.to_dict() for name, result in self.results.items()}
        return dict(jsonable(contents))

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict` to a file, completely or not at all.

        Args:
            path: The JSON file.

        Raises:
            RawlsError: If the file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def to_frame(self) -> pd.DataFrame:
        """Return the figures of every group as a table.

        Returns:
            One row for each model and group, with the columns model, group, nodes, share,
            accuracy, accuracy_against_rest, loss, loss_against_rest (each of the last four with
            _low and _high, the ends of its interval), confidence_excess, calibration_error,
            too_small and pooled. See :class:`~rawlsgcn.evaluation.audit.findings.GroupAudit`.
        """
        import pandas as pd

        columns = ("accuracy", "accuracy_against_rest", "loss", "loss_against_rest")
        rows = []
        for model in self.models:
            for group in model.groups:
                row: dict[str, Any] = {"model": model.name, "group": group.label}
                row |= {"nodes": group.nodes, "share": group.share}
                for name in columns:
                    value, low, high = astuple(getattr(group, name))
                    row |= {name: value, f"{name}_low": low, f"{name}_high": high}
                known = group.calibration
                row["confidence_excess"] = math.nan if known is None else known.excess.value
                row["calibration_error"] = math.nan if known is None else known.error
                rows.append({**row, "too_small": group.too_small, "pooled": group.pooled})
        return pd.DataFrame(rows)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page: see :func:`rawlsgcn.report`.

        Args:
            path: The HTML file; it is written completely or not at all.

        Returns:
            The path of the file.

        Raises:
            RawlsError: If the file cannot be written, or the extra ``report`` is not installed.
        """
        with needs_extra("the page of an audit"):
            from ...reporting.page import report

        return report(self, path)

    def __str__(self) -> str:
        from ...reporting.audit_verdict import verdict

        return "\n".join(verdict(self).lines)

    def __repr__(self) -> str:
        from ...reporting.text_tables import audit_text

        return audit_text(self)

    def _repr_html_(self) -> str | None:
        try:
            from ...reporting.notebook import audit_html
        except ModuleNotFoundError:  # without the extra ``report``: the text is shown
            return None
        return audit_html(self)
