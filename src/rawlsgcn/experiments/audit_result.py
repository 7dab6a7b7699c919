"""What an audit gives: models judged by degree, in one object that prints, saves and shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.atomic_files import atomic_file
from .._core.serialization import jsonable
from ..evaluation.audit.findings import ModelAudit, ModelComparison, Provenance, ShownNodes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Audit:
    """One or more models on one graph, judged by degree (or by another column of the nodes).

    ``column`` names what the nodes are grouped by, ``ordered`` says whether its values have an
    order (numbers) or not (text). ``comparisons`` holds every pair of models that have learned.
    ``training_nodes_excluded`` is False where the graph has no masks: then nodes that a model was
    trained on may be among the judged ones. ``nodes`` is None with ``shown=0``. ``results`` holds,
    by their names here, the trained :class:`Result` objects that were audited (also those of which
    every run diverged, which are not among the ``models``); it is empty for other predictions.
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
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics of each group of each model.

        Returns:
            One row for each model and group: ``model``, ``group``, ``nodes``, ``too_small``, and
            ``accuracy`` (in per cent) and ``loss``, each with the ends of its 95 % interval in
            ``…_low`` and ``…_high``.
        """
        import pandas as pd

        rows = []
        for model in self.models:
            for group in model.groups:
                row: dict[str, Any] = {
                    "model": model.name,
                    "group": group.label,
                    "nodes": group.nodes,
                    "too_small": group.too_small,
                }
                for metric in ("accuracy", "loss"):
                    estimate = getattr(group, metric)
                    row |= {
                        metric: estimate.value,
                        f"{metric}_low": estimate.low,
                        f"{metric}_high": estimate.high,
                    }
                rows.append(row)
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in the form that ``--json`` writes, the words of the verdict first.

        Returns:
            Plain dictionaries, lists, numbers and text; a number that is not defined is None.
        """
        from ..reporting.words import verdict

        contents = {"verdict": asdict(verdict(self)), **asdict(replace(self, results={}))}
        contents["results"] = {name: result.to_dict() for name, result in self.results.items()}
        return dict(jsonable(contents))

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict` to a file, completely or not at all.

        Args:
            path: The JSON file.

        Raises:
            RawlsError: The file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        from ..reporting.words import verdict

        return "\n".join(verdict(self).lines)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page: see :func:`rawlsgcn.report`.

        Args:
            path: The HTML file; it is written completely or not at all.

        Returns:
            The path of the file.

        Raises:
            RawlsError: The file cannot be written.
        """
        from ..reporting.page import report

        return report(self, path)

    def _repr_html_(self) -> str:
        from ..reporting.notebook import audit_html

        return audit_html(self)
