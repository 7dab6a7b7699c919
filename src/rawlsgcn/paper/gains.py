"""What is the method and what is the tuning: the fair comparison's gains, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .plan import OWN


@dataclass(frozen=True)
class Gain:
    """A method on a graph of the fair comparison: accuracies, and its calibrated bias as a
    multiple of the tuned GCN's."""

    graph: str
    title: str
    before: float
    tuned: float
    own: float
    bias_ratio: float

    @property
    def by_tuning(self) -> float:
        return self.tuned - self.before

    @property
    def by_method(self) -> float:
        return self.own - self.tuned


def tuning_gains(results: Mapping[str, Any]) -> list[Gain]:
    """How much of the gain in accuracy is the tuning, and how much the method."""
    cells = {
        (cell["dataset"], cell["method"]): cell
        for cell in results["cells"]
        if cell["protocol"] == "fair" and cell["chosen"]["validation"] is not None
    }
    gains = []
    for (dataset, method), cell in cells.items():
        gcn = cells.get((dataset, "gcn"))
        before = None if gcn is None else _as_in_the_paper(gcn)
        if method not in OWN or gcn is None or before is None:
            continue
        both = [each["chosen"]["validation"] for each in (gcn, cell)]
        tuned, own = (each["accuracy"]["mean"] for each in both)
        base, bias = (each["calibrated_bias"]["mean"] for each in both)
        if None not in (tuned, own, base, bias):
            gains.append(Gain(cell["graph"], cell["title"], before, tuned, own, bias / base))
    return gains


def _as_in_the_paper(gcn: Mapping[str, Any]) -> float | None:
    """GCN at the paper's rate and weight decay, which is a point of the fair grid."""
    for trial in gcn["trials"]:
        if trial["values"] == {"lr": 0.01, "weight_decay": 5e-4}:
            found: float | None = trial["accuracy"]["mean"]
            return found
    return None
