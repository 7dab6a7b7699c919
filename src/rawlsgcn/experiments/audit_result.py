"""What an audit gives: models judged by degree, in one object that prints, saves and shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._core.atomic_files import atomic_file
from ..evaluation.audit.findings import ModelAudit, ModelComparison, Provenance, ShownNodes
from .result import jsonable


@dataclass(frozen=True)
class Audit:
    """One or more models on one graph, judged by degree (or by another column of the nodes).

    ``column`` names what the nodes are grouped by, ``ordered`` says whether its values have an
    order (numbers) or not (text). ``comparisons`` holds every pair of models that have learned.
    ``training_nodes_excluded`` is False where the graph has no masks: then nodes that a model was
    trained on may be among the judged ones. ``nodes`` is there unless it was asked to leave
    single nodes out.
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

    def model(self, name: str) -> ModelAudit:
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in the form that ``--json`` writes; the verdict's words come first."""
        from ..reporting.audit_words import verdict

        words = asdict(verdict(self))
        figures: dict[str, Any] = jsonable({"verdict": words, **asdict(self)})
        return figures

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict` to a file."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        from ..reporting.audit_words import verdict

        words = verdict(self)
        return "\n".join([words.headline, *words.sentences])

    def to_html(self, path: str | Path) -> Path:
        """Write the page: one file that needs nothing else."""
        from ..reporting.audit_page import write_page

        return write_page(self, path)

    def _repr_html_(self) -> str:
        from ..reporting.notebook import audit_html

        return audit_html(self)
