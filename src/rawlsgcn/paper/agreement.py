r"""Whether our figure agrees with the one that the paper publishes.

With our mean m and the published one m', their standard deviations s and s' over n and n' = 5 runs,
:math:`d = |m - m'|` and the standard error of that difference
:math:`e = \sqrt{s^2 / (n - 1) + s'^2 / (n' - 1)}` (the deviations are those of the population):

- a figure is *better* or *differs* where :math:`d > \max(2 \sqrt{s^2 + s'^2}, \text{margin})`,
- *reproduced* where :math:`d + 2e \le \Delta`, with Δ a difference that matters,
- otherwise *inconclusive*. docs/reproducing.md has the margins, and what follows from this rule.

``published.json`` has the paper's numbers by our names of its graphs, methods and normalizations.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

REPRODUCED, BETTER, DIFFERS, INCONCLUSIVE = "reproduced", "better", "differs", "inconclusive"
DIVERGED, NEW = "diverged", "new"
"""``diverged``: one of our runs ended in NaN or infinity. ``new``: the paper has no number there
(out of memory, or not one of its cells)."""
PUBLISHED_VERDICTS = (REPRODUCED, BETTER, DIFFERS, INCONCLUSIVE, DIVERGED)
"""The possible verdicts on a figure that the paper publishes."""

ACCURACY_POINTS = 1.0
BIAS_SHARE = 0.15
DEVIATIONS = 2.0
RELEVANT_POINTS = 2.0
RELEVANT_FACTOR = 2.0
ERRORS = 2.0
PUBLISHED_RUNS = 5

RULE = (
    f"Verdicts: better or differs where ours is more than {DEVIATIONS:g} combined standard "
    f"deviations and more than {ACCURACY_POINTS:.1f} point of accuracy or "
    f"{100 * BIAS_SHARE:g} % of bias away from the printed figure; reproduced where it is not, and "
    f"the difference with {ERRORS:g} of its standard errors is at most {RELEVANT_POINTS:.1f} "
    f"points of accuracy or a factor of {RELEVANT_FACTOR:g} of bias; inconclusive where the "
    "spread is too wide to show either; new where the paper prints no number."
)
"""The rule in one sentence, for notes below tables."""

# A mean and its standard deviation; None where a run diverged.
MeanAndStd = tuple[float | None, float | None]


@cache
def published() -> dict[str, Any]:
    """Return all tables of the paper."""
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def published_figures(dataset: str, method: str, normalization: str = "") -> dict[str, Any]:
    """Return accuracy and bias, each [mean, std] or None where the paper has no number.

    Without a ``normalization`` they are those of Table 3 (or of Chameleon's), with one those of
    the ablation tables.
    """
    cell = published()["ablation" if normalization else "effectiveness"].get(dataset, {})
    for name in (method, normalization):
        cell = cell.get(name, {}) if name else cell
    return cell or {"accuracy": None, "bias": None}


def figure_verdict(
    name: str, ours: MeanAndStd, paper: Sequence[float] | None, runs: int = PUBLISHED_RUNS
) -> str:
    """Compare our "accuracy" in per cent, or our "bias", over ``runs`` runs with the paper's."""
    if paper is None:
        return NEW
    (mean, std), (paper_mean, paper_std) = ours, paper
    if mean is None or std is None or not math.isfinite(mean + std):
        return DIVERGED
    difference, margin, relevant = mean - paper_mean, ACCURACY_POINTS, RELEVANT_POINTS
    if name == "bias":
        margin, relevant = BIAS_SHARE * paper_mean, (RELEVANT_FACTOR - 1) * min(paper_mean, mean)
    if abs(difference) > max(DEVIATIONS * math.hypot(std, paper_std), margin):
        return BETTER if (difference > 0) == (name == "accuracy") else DIFFERS
    if runs < 2:
        return INCONCLUSIVE
    error = math.hypot(std / math.sqrt(runs - 1), paper_std / math.sqrt(PUBLISHED_RUNS - 1))
    return REPRODUCED if abs(difference) + ERRORS * error <= relevant else INCONCLUSIVE


def _cost_verdict(ours: float, paper: float | None) -> str:
    """Compare seconds or memory, which depend on the machine: within 15 %, less, or more."""
    if paper is None:
        return NEW
    if abs(ours - paper) <= BIAS_SHARE * paper:
        return REPRODUCED
    return BETTER if ours < paper else DIFFERS


def verdicts(
    protocol: str, chosen: Mapping[str, Any], paper: Mapping[str, Any] | None
) -> dict[str, str]:
    """Return the verdicts on all figures of a protocol; the fair one is not in the paper."""
    paper = paper or {}
    if protocol == "fair":
        return {}
    if protocol == "efficiency":
        parameters = paper.get("parameters")
        same = REPRODUCED if chosen["parameters"] == parameters else DIFFERS
        seconds, memory = chosen["training_seconds"], chosen["peak_memory_mb"]
        return {
            "parameters": NEW if parameters is None else same,
            "memory_mb": _cost_verdict(memory, paper.get("memory_mb")),
            "training_seconds": _cost_verdict(seconds, paper.get("training_seconds")),
        }
    figures = {name: chosen[name] for name in ("accuracy", "bias")}
    return {
        name: figure_verdict(name, (each["mean"], each["std"]), paper.get(name), len(each["runs"]))
        for name, each in figures.items()
    }


def with_current_verdicts(results: dict[str, Any]) -> dict[str, Any]:
    """Apply the current rule to kept results, whose verdicts may be of an earlier one."""
    for cell in results["cells"]:
        for chosen in cell["chosen"].values():
            if chosen is not None:
                chosen["verdict"] = verdicts(cell["protocol"], chosen, cell["paper"])
    return results
